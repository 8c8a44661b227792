package account

import (
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // older installations of Django hashed with it
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/alexedwards/argon2id"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

const (
	argonPrefix = "$argon2id$"
	// argonIndependent is the variant that PHP and older installations of Django use.
	argonIndependent = "$argon2i$"
	// bcryptOfSum is how Django writes bcrypt of the hexadecimal SHA-256 sum of a password.
	bcryptOfSum = "bcrypt_sha256$"
)

// hashPrefixes are what frameworks write before the common encoding of a hash: Django
// the name of its hasher, Spring Security the id of its encoder.
var hashPrefixes = []string{"argon2$", "bcrypt$", "{argon2}", "{argon2@SpringSecurity_v5_8}", "{bcrypt}"}

// trimHashPrefix returns a hash in the common encoding; "" = the user has no password, for
// which Django and Unix write a mark.
func trimHashPrefix(encoded string) string {
	if strings.HasPrefix(encoded, "!") || encoded == "*" {
		return ""
	}
	for _, prefix := range hashPrefixes {
		if rest, ok := strings.CutPrefix(encoded, prefix); ok {
			return "$" + strings.TrimPrefix(rest, "$")
		}
	}
	return encoded
}

// Bounds of imported hashes: one comparison takes at most about a second of a core and
// 128 MiB. A sign-in replaces the hash.
const (
	maxBcryptCost   = 14
	maxIterations   = 2_000_000 // of PBKDF2
	maxHashMemory   = 128 << 20 // of argon2id and scrypt, in bytes
	maxArgonPasses  = 10        // of argon2id
	maxHashLanes    = 16        // of argon2id and scrypt
	minHashedLength = 16        // of PBKDF2 and scrypt, in bytes
	maxHashText     = 512       // of an encoded hash, in bytes
)

var errHashFormat = errors.New("unknown format of a password hash")

// derived is a hash that is compared by deriving it again.
type derived struct {
	want   []byte
	derive func(password string, length int) ([]byte, error)
}

// checkImportedHash returns an error for a password hash that this server cannot compare,
// or whose comparison would cost too much: argon2, bcrypt, and what Django makes of bcrypt,
// PBKDF2 and scrypt.
func checkImportedHash(encoded string) error {
	if len(encoded) > maxHashText {
		return errHashFormat
	}
	switch {
	case strings.HasPrefix(encoded, argonPrefix), strings.HasPrefix(encoded, argonIndependent):
		params, _, _, err := argon2id.DecodeHash(strings.Replace(encoded, argonIndependent, argonPrefix, 1))
		if err != nil {
			return err
		}
		if int64(params.Memory)<<10 > maxHashMemory || params.Iterations > maxArgonPasses ||
			params.Parallelism > maxHashLanes {
			return errors.New("the parameters of argon2 are too high")
		}
		return nil
	case isBcrypt(strings.TrimPrefix(encoded, bcryptOfSum)):
		cost, err := bcrypt.Cost([]byte(strings.TrimPrefix(encoded, bcryptOfSum)))
		if err == nil && cost > maxBcryptCost {
			err = errors.New("the cost of bcrypt is too high")
		}
		return err
	}
	_, err := decodeDerived(encoded)
	return err
}

// isBcrypt reports whether a hash is of bcrypt. Variant $2x$ repeats a fault of an old
// version of PHP, which this server does not have.
func isBcrypt(encoded string) bool {
	return strings.HasPrefix(encoded, "$2a$") || strings.HasPrefix(encoded, "$2b$") || strings.HasPrefix(encoded, "$2y$")
}

// compareImported compares a password with a hash that another system made.
func compareImported(password, encoded string) (bool, error) {
	if rest, ok := strings.CutPrefix(encoded, bcryptOfSum); ok {
		sum := sha256.Sum256([]byte(password))
		password, encoded = hex.EncodeToString(sum[:]), rest
	}
	if strings.HasPrefix(encoded, argonIndependent) {
		params, salt, want, err := argon2id.DecodeHash(strings.Replace(encoded, argonIndependent, argonPrefix, 1))
		if err != nil {
			return false, err
		}
		got := argon2.Key([]byte(password), salt, params.Iterations, params.Memory, params.Parallelism, params.KeyLength)
		return subtle.ConstantTimeCompare(got, want) == 1, nil
	}
	if isBcrypt(encoded) {
		err := bcrypt.CompareHashAndPassword([]byte(encoded), []byte(password))
		if errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
			return false, nil
		}
		return err == nil, err
	}
	d, err := decodeDerived(encoded)
	if err != nil {
		return false, err
	}
	got, err := d.derive(password, len(d.want))
	return err == nil && subtle.ConstantTimeCompare(got, d.want) == 1, err
}

// decodeDerived decodes the formats of Django:
//
//	pbkdf2_sha256$iterations$salt$hash
//	pbkdf2_sha1$iterations$salt$hash
//	scrypt$N$salt$r$p$hash
func decodeDerived(encoded string) (derived, error) {
	parts := strings.Split(encoded, "$")
	switch {
	case parts[0] == "pbkdf2_sha256" && len(parts) == 4:
		return decodePBKDF2(sha256.New, parts)
	case parts[0] == "pbkdf2_sha1" && len(parts) == 4:
		return decodePBKDF2(sha1.New, parts)
	case parts[0] == "scrypt" && len(parts) == 6:
		return decodeScrypt(parts)
	}
	return derived{}, errHashFormat
}

func decodePBKDF2(algorithm func() hash.Hash, parts []string) (derived, error) {
	iterations, err := bounded(parts[1], maxIterations)
	if err != nil {
		return derived{}, err
	}
	want, err := decodeHash(parts[3])
	return derived{want, func(password string, length int) ([]byte, error) {
		return pbkdf2.Key(algorithm, password, []byte(parts[2]), iterations, length)
	}}, err
}

func decodeScrypt(parts []string) (derived, error) {
	n, errN := bounded(parts[1], maxHashMemory/128)
	r, errR := bounded(parts[3], maxHashMemory/128)
	p, errP := bounded(parts[4], maxHashLanes)
	want, err := decodeHash(parts[5])
	if err := errors.Join(errN, errR, errP, err); err != nil {
		return derived{}, err
	}
	if n&(n-1) != 0 || n < 2 || 128*n*r > maxHashMemory {
		return derived{}, errors.New("the parameters of scrypt are too high, or none")
	}
	return derived{want, func(password string, length int) ([]byte, error) {
		return scrypt.Key([]byte(password), []byte(parts[2]), n, r, p, length)
	}}, nil
}

func bounded(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("a parameter of a password hash is not within 1 and %d", most)
	}
	return n, nil
}

func decodeHash(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < minHashedLength {
		return nil, errHashFormat
	}
	return raw, nil
}
