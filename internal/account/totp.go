package account

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"seckill/internal/auth"
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

// errSealed reports a secret that no key opens.
var errSealed = errors.New("no signing key opens the secret: it was removed; reset the user's one-time codes")

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// totpSecrets seals secrets for storage with keys derived from the signing keys, so that
// a copy of the database has no usable secrets (AES-256-GCM; the user is authenticated).
type totpSecrets struct {
	keys [][]byte // the first seals, all open
}

func newTOTPSecrets(keys auth.Keys) totpSecrets {
	return totpSecrets{keys: keys.Derive("totp secrets")}
}

func (t totpSecrets) seal(user uuid.UUID, secret []byte) ([]byte, error) {
	box, err := aead(t.keys[0])
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, box.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("seal totp secret: %w", err)
	}
	return box.Seal(nonce, nonce, secret, user[:]), nil
}

// open returns the secret. old reports that another key than the first opened it: seal it
// again before that key is removed.
func (t totpSecrets) open(user uuid.UUID, sealed []byte) (secret []byte, old bool, err error) {
	for i, key := range t.keys {
		box, err := aead(key)
		if err != nil {
			return nil, false, err
		}
		if len(sealed) < box.NonceSize() {
			break
		}
		secret, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], user[:])
		if err == nil {
			return secret, i > 0, nil
		}
	}
	return nil, false, errSealed
}

func aead(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of totp secrets: %w", err)
	}
	return cipher.NewGCM(block)
}

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
		ok, err := hotp.ValidateCustom(code, uint64(step), letters.EncodeToString(secret), totpOptions) //nolint:gosec // the time is after 1970
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

// cleanCode removes what people type between the characters of a code.
func cleanCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
}
