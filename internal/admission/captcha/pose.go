package captcha

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/altcha-org/altcha-lib-go"
)

// saltBytes makes every proof of work a fresh one: 128 bits.
const saltBytes = 16

// posed is a puzzle and its answer, not yet stored.
type posed struct {
	kind       Kind
	answer     string
	image      string
	parameters string
}

// pose makes a puzzle of the kind wished for, or a proof of work when pictures
// are asked for faster than they can be drawn.
func (s *Service) pose(kind Kind, expires time.Time) (posed, error) {
	if kind == ProofOfWork {
		return s.work(expires)
	}
	p, ok, err := s.studio.take(kind)
	if err != nil {
		return posed{}, err
	}
	if !ok {
		return s.work(expires)
	}
	return posed{kind: p.kind, answer: p.answer, image: p.image}, nil
}

// workParameters is what the client needs: find the number from 0 to MaxNumber for
// which SHA-256 of salt and number, in decimal, equals Challenge (ALTCHA).
type workParameters struct {
	Algorithm string `json:"algorithm"`
	Salt      string `json:"salt"`
	Challenge string `json:"challenge"` // hexadecimal
	MaxNumber int64  `json:"maxNumber"`
	Signature string `json:"signature"` // HMAC of the challenge; for clients that carry it, we go by our own record
}

func (s *Service) work(expires time.Time) (posed, error) {
	number, err := randomBelow(int64(s.cfg.PowMax) + 1)
	if err != nil {
		return posed{}, err
	}
	c, err := altcha.CreateChallenge(altcha.ChallengeOptions{
		Algorithm: altcha.SHA256, MaxNumber: int64(s.cfg.PowMax), Number: &number,
		SaltLength: saltBytes, Expires: &expires, HMACKey: s.signing,
	})
	if err != nil {
		return posed{}, fmt.Errorf("make proof of work: %w", err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // the salt ends in "&", which programs that only look at the text must see
	if err := enc.Encode(workParameters{
		Algorithm: c.Algorithm, Salt: c.Salt, Challenge: c.Challenge, MaxNumber: c.MaxNumber, Signature: c.Signature,
	}); err != nil {
		return posed{}, fmt.Errorf("write proof of work: %w", err)
	}
	return posed{
		kind: ProofOfWork, answer: strconv.FormatInt(number, 10),
		parameters: string(bytes.TrimSpace(text.Bytes())),
	}, nil
}
