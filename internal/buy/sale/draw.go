package sale

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"
)

const (
	// DrawBits is the size of a number in the draw: the integers that a score in Redis, a
	// float64, holds exactly.
	DrawBits = 52
	// revealAfter is how long after the opening a seed becomes public: longer than the clocks
	// of the hosts may differ, because a buyer with the seed could choose a good nonce.
	revealAfter = time.Minute
)

// DrawSeed is the secret from which the numbers of the draw of an item are computed. Its
// commitment is public from the start and the seed itself after the opening, so that
// any client can check that its number was not chosen: see docs/fairness.md.
type DrawSeed []byte

// ParseDrawSeed returns the seed of a text of Hex.
func ParseDrawSeed(text string) (DrawSeed, error) {
	seed, err := hex.DecodeString(text)
	if err != nil || len(seed) != sha256.Size {
		return nil, errors.New("a seed is 32 bytes in hexadecimal")
	}
	return seed, nil
}

// Commitment returns the SHA-256 of the seed in hexadecimal.
func (s DrawSeed) Commitment() string {
	sum := sha256.Sum256(s)
	return hex.EncodeToString(sum[:])
}

// Hex returns the seed in hexadecimal.
func (s DrawSeed) Hex() string { return hex.EncodeToString(s) }

// Number returns the number of a nonce, 1 to 2^DrawBits: the first DrawBits bits of the
// HMAC-SHA-256 of the nonce with the seed as its key, plus one.
func (s DrawSeed) Number(nonce string) uint64 {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(nonce))
	return binary.BigEndian.Uint64(mac.Sum(nil))>>(64-DrawBits) + 1
}

// String hides the seed.
func (DrawSeed) String() string { return "seed of a draw" }

// GoString hides the seed.
func (s DrawSeed) GoString() string { return s.String() }

// LogValue hides the seed.
func (s DrawSeed) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Drawn reports whether the seeds of the draws of the sale are public. A sale that was not
// loaded at its opening can still be moved, and its draw takes place then. opens is the
// opening of the gate, if that is known and later than the sale's own.
func (s *Sale) Drawn(now, opens time.Time) bool {
	if opens.Before(s.StartsAt) {
		opens = s.StartsAt
	}
	movable := s.Status == Approved || s.Status == Scheduled
	return !movable && !now.Before(opens.Add(revealAfter))
}
