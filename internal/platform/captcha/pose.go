package captcha

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/altcha-org/altcha-lib-go"

	"seckill/internal/platform/id"
)

// saltBytes is the salt length, 128 bits: it makes every proof of work unique.
const saltBytes = 16

// posed is a challenge that is not signed yet.
type posed struct {
	kind   Kind
	image  string
	answer string
	work   work // of a proof of work
}

// work is a number to compute.
type work struct {
	number, most int64 // most is its maximum
}

// poseInput is what a challenge is created for.
type poseInput struct {
	challenge id.Challenge
	kind      Kind // requested
	level     int  // of difficulty of a proof of work, from 0
}

// pose creates a challenge of the requested kind as far as the rules allow, or a proof
// of work if images are requested faster than they can be drawn. A sale that excludes
// proofs of work waits for an image.
func (s *Service) pose(ctx context.Context, rules Rules, in poseInput) (posed, error) {
	kind := rules.offered(in.kind)
	if kind == External {
		return posed{kind: External, answer: s.passed(in.challenge)}, nil
	}
	if kind != ProofOfWork {
		p, ok, err := s.images.take(ctx, kind, rules.needsImage())
		if ok || err != nil {
			return posed{kind: p.kind, image: p.image, answer: p.answer}, err
		}
	}
	most := max(int64(rules.PowMax), min(int64(rules.PowMax)<<in.level, HardestPow))
	number, err := randomBelow(most + 1)
	return posed{kind: ProofOfWork, answer: strconv.FormatInt(number, 10), work: work{number, most}}, err
}

// workParameters are the parameters for the client: find the number from 0 to MaxNumber
// for which SHA-256 of salt and number, in decimal, equals Challenge (ALTCHA).
type workParameters struct {
	Algorithm string `json:"algorithm"`
	Salt      string `json:"salt"`
	Challenge string `json:"challenge"` // hexadecimal
	MaxNumber int64  `json:"maxNumber"`
	Signature string `json:"signature"` // HMAC of the challenge, for clients that check it; the server uses its token
}

// parameters encodes the parameters for the client.
func (s *Service) parameters(w work, expires time.Time) (string, error) {
	c, err := altcha.CreateChallenge(altcha.ChallengeOptions{
		Algorithm: altcha.SHA256, MaxNumber: w.most, Number: &w.number,
		SaltLength: saltBytes, Expires: &expires, HMACKey: s.signing,
	})
	if err != nil {
		return "", fmt.Errorf("make proof of work: %w", err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // the salt ends in "&", which clients must receive unescaped
	if err := enc.Encode(workParameters{
		Algorithm: c.Algorithm, Salt: c.Salt, Challenge: c.Challenge, MaxNumber: c.MaxNumber, Signature: c.Signature,
	}); err != nil {
		return "", fmt.Errorf("write proof of work: %w", err)
	}
	return string(bytes.TrimSpace(text.Bytes())), nil
}
