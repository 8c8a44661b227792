package account

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

// One-time codes follow RFC 6238 with its default parameters, which are the ones that
// every authenticator app supports.
const (
	totpPeriod      = 30 // seconds
	totpSkew        = 1  // accepted steps before and after the present one
	totpSecretBytes = 20 // length of the hash, RFC 4226 §4
	totpIssuer      = "Seckill"
	// recoveryCount codes of recoveryBytes (16 letters) are issued at once.
	recoveryCount = 10
	recoveryBytes = 10
)

var totpOptions = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

func newTOTPSecret() ([]byte, error) {
	secret := make([]byte, totpSecretBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("totp secret: %w", err)
	}
	return secret, nil
}

// totpURI returns the address that authenticator apps read from a QR code.
func totpURI(account, secret string) string {
	return (&url.URL{
		Scheme: "otpauth", Host: "totp", Path: "/" + totpIssuer + ":" + account,
		RawQuery: url.Values{"secret": {secret}, "issuer": {totpIssuer}}.Encode(),
	}).String()
}

// totpStep returns the time step of a code that is valid now and newer than the step
// after; false if there is none.
func totpStep(secret []byte, code string, now time.Time, after int64) (int64, bool) {
	present := now.Unix() / totpPeriod
	for step := max(present-totpSkew, after+1); step <= present+totpSkew; step++ {
		ok, err := hotp.ValidateCustom(code, uint64(step), letters.EncodeToString(secret), totpOptions)
		if err == nil && ok {
			return step, true
		}
	}
	return 0, false
}

// newRecoveryCodes returns codes to show, and their hashes to store. A code has 80 random
// bits, so that a plain hash does.
func newRecoveryCodes() (codes []string, stored string, err error) {
	hashes := make([]string, recoveryCount)
	for i := range hashes {
		raw := make([]byte, recoveryBytes)
		if _, err := rand.Read(raw); err != nil {
			return nil, "", fmt.Errorf("recovery codes: %w", err)
		}
		code := letters.EncodeToString(raw)
		hashes[i] = recoveryHash(code)
		codes = append(codes, strings.Join([]string{code[:4], code[4:8], code[8:12], code[12:]}, "-"))
	}
	return codes, strings.Join(hashes, " "), nil
}

// withoutRecovery returns the stored hashes without the one of code; false if it is not
// among them.
func withoutRecovery(stored, code string) (string, bool) {
	hashes := strings.Fields(stored)
	i := slices.Index(hashes, recoveryHash(code))
	if i < 0 {
		return stored, false
	}
	return strings.Join(slices.Delete(hashes, i, i+1), " "), true
}

func recoveryHash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return base64.RawStdEncoding.EncodeToString(sum[:])
}
