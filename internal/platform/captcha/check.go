package captcha

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// Verdict is the result of verifying an answer, as AnswerLua returns it.
type Verdict string

// Verdicts.
const (
	Right   Verdict = "right"
	Wrong   Verdict = "wrong"   // the challenge stays open until the third wrong answer
	NotOpen Verdict = "unknown" // used, expired, void, or of another user
	Early   Verdict = "early"   // right, but the challenge was created before the opening
)

// WrongAnswer is an answer that was not accepted, and what the next challenge depends on.
type WrongAnswer struct {
	Scope   Scope
	Answer  Answer
	Verdict Verdict
	Kind    Kind // of the answered challenge; "" if unknown
}

// Check verifies an answer and uses it up if it is right. A refusal is Invalid or
// Required and contains the next challenge.
func (s *Service) Check(ctx context.Context, scope Scope, a Answer) error {
	a, err := s.Exchange(ctx, scope, a)
	if err != nil {
		return err
	}
	challenge, mac := s.Seal(scope, a)
	if challenge.IsZero() {
		return s.Refuse(ctx, WrongAnswer{Scope: scope, Answer: a, Verdict: NotOpen})
	}
	reply, err := checkScript.Run(ctx, s.cfg.Client, []string{s.Key(scope, challenge)}, challenge.String(), mac).StringSlice()
	if err != nil {
		return unavailable("check captcha", err)
	}
	if len(reply) != 2 {
		return fmt.Errorf("captcha script replied %d values", len(reply))
	}
	if Verdict(reply[0]) == Right {
		return nil
	}
	return s.Refuse(ctx, WrongAnswer{Scope: scope, Answer: a, Verdict: Verdict(reply[0]), Kind: Kind(reply[1])})
}

// Refuse returns the refusal of an answer that was not right, with the next challenge,
// of the same kind. A wrongly answered challenge stays open beside the next one until
// its third wrong answer. Nothing is voided here: an answer that is sent twice must not
// cost the user the path token that the first one received.
func (s *Service) Refuse(ctx context.Context, in WrongAnswer) error {
	challenge, _ := s.Seal(in.Scope, in.Answer)
	if challenge.IsZero() {
		challenge = none
	}
	kind := in.Kind
	if kind == "" {
		kind = ProofOfWork // the client may not be able to show images
	}
	o := createOptions{kind: kind, keep: challenge, points: requestPoints}
	if in.Verdict == Wrong {
		o.points = wrongPoints
	}
	next, err := s.create(ctx, in.Scope, o)
	if err != nil {
		return err
	}
	if in.Answer == (Answer{}) || in.Verdict == Early {
		return Required{Challenge: &next, At: answerPath}
	}
	return Invalid{Challenge: &next, At: answerPath}
}

// none is the id of no challenge: with it, no challenge is kept open and no path token
// voided.
var none = id.Challenge(uuid.Max)
