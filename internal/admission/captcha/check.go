package captcha

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"seckill/internal/fault"
)

// Verdict is how an answer was judged, as AnswerLua says it.
type Verdict string

// Verdicts.
const (
	Right   Verdict = "right"
	Wrong   Verdict = "wrong"   // the challenge stays open until the third wrong answer
	NotOpen Verdict = "unknown" // used, lapsed, void, or somebody else's
)

// Judgement is a verdict on an answer that was not right, and what the next
// challenge should look like.
type Judgement struct {
	Scope   Scope
	Answer  Answer
	Verdict Verdict
	Kind    Kind // of the challenge that was answered; "" when it is not known
}

// Check judges an answer and uses it up when it is right. A refusal is Invalid or
// Required and carries the next challenge.
func (s *Service) Check(ctx context.Context, scope Scope, a Answer) (fault.Refusal, error) {
	challenge, mac := s.Seal(scope, a)
	if challenge == uuid.Nil {
		return s.Refuse(ctx, Judgement{Scope: scope, Answer: a, Verdict: NotOpen})
	}
	reply, err := checkScript.Run(ctx, s.cfg.Client, []string{s.Key(scope, challenge)}, challenge.String(), mac).StringSlice()
	if err != nil {
		return nil, unavailable("check captcha", err)
	}
	if len(reply) != 2 {
		return nil, fmt.Errorf("captcha script replied %d values", len(reply))
	}
	if Verdict(reply[0]) == Right {
		return nil, nil
	}
	return s.Refuse(ctx, Judgement{Scope: scope, Answer: a, Verdict: Verdict(reply[0]), Kind: Kind(reply[1])})
}

// Refuse words the refusal of an answer that was not right, with the next
// challenge in it, of the same kind. A challenge that was answered wrongly stays
// open beside the next one until its third wrong answer. Nothing is voided here:
// an answer sent twice must not cost the person the path that the first one won.
func (s *Service) Refuse(ctx context.Context, j Judgement) (fault.Refusal, error) {
	challenge, _ := s.Seal(j.Scope, j.Answer)
	if challenge == uuid.Nil {
		challenge = none
	}
	kind := j.Kind
	if kind == "" {
		kind = ProofOfWork // whoever sent it may not be able to see pictures
	}
	o := opening{kind: kind, keep: challenge, points: requestPoints}
	if j.Verdict == Wrong {
		o.points = wrongPoints
	}
	next, err := s.create(ctx, j.Scope, o)
	if err != nil {
		return nil, err
	}
	if j.Answer == (Answer{}) {
		return Required{Challenge: &next, At: answerPath}, nil
	}
	return Invalid{Challenge: &next, At: answerPath}, nil
}

// none is a challenge id that no challenge has: nothing is kept open, and no path voided.
var none = uuid.Max
