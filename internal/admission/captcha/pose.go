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

// posed is a puzzle, not yet stored. One that can be harder has an answer for
// each level: the script that stores it picks.
type posed struct {
	kind    Kind
	image   string
	answers []string // one for all levels, or one for each from the lowest up
	works   []work   // behind the answers of a proof of work
}

// work is a number to find.
type work struct {
	number, most int64 // most is the highest that it could be
}

// pose makes a puzzle of the kind wished for, or a proof of work when pictures
// are asked for faster than they can be drawn.
func (s *Service) pose(kind Kind, powMax int, byLevel bool) (posed, error) {
	if kind != ProofOfWork {
		p, ok, err := s.images.take(kind)
		if ok || err != nil {
			return posed{kind: p.kind, image: p.image, answers: []string{p.answer}}, err
		}
	}
	out := posed{kind: ProofOfWork}
	for level := range levels {
		if level > 0 && !byLevel {
			break
		}
		most := max(int64(powMax), min(int64(powMax)<<level, HardestPow))
		number, err := randomBelow(most + 1)
		if err != nil {
			return posed{}, err
		}
		out.works = append(out.works, work{number: number, most: most})
		out.answers = append(out.answers, strconv.FormatInt(number, 10))
	}
	return out, nil
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

// parameters writes what the client gets.
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
	enc.SetEscapeHTML(false) // the salt ends in "&", which programs that only look at the text must see
	if err := enc.Encode(workParameters{
		Algorithm: c.Algorithm, Salt: c.Salt, Challenge: c.Challenge, MaxNumber: c.MaxNumber, Signature: c.Signature,
	}); err != nil {
		return "", fmt.Errorf("write proof of work: %w", err)
	}
	return string(bytes.TrimSpace(text.Bytes())), nil
}
