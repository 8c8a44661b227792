package captcha

import (
	"context"

	"seckill/internal/platform/id"
)

// Verdict is the result of verifying an answer, as Claim and AnswerLua return it.
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
	claim := s.Claim(scope, a)
	if claim.Verdict != NotOpen {
		shard, field := id.ShardOf(id.Sale(claim.nonce)), claim.nonce.String()
		if scope.Purpose == Seckill {
			shard, field = id.ShardOf(scope.Sale), scope.User.String()
		}
		verdict, err := checkScript.Run(ctx, s.cfg.Client, []string{s.cfg.Keys.Answers(shard, scope.Sale)},
			field, string(claim.Verdict), claim.Created, s.cfg.Life.Milliseconds(), s.RecordLife().Milliseconds()).Text()
		if err != nil {
			return unavailable("check captcha", err)
		}
		claim.Verdict = Verdict(verdict)
	}
	if claim.Verdict == Right {
		return nil
	}
	return s.Refuse(ctx, WrongAnswer{Scope: scope, Answer: a, Verdict: claim.Verdict, Kind: claim.Kind})
}

// Refuse returns the refusal of an answer that was not right, with the next challenge,
// of the same kind. It voids nothing: a wrongly answered challenge may be answered again until
// its third wrong answer or until a later one is answered, and an answer that is sent twice
// must not cost the user the path token that the first one received.
func (s *Service) Refuse(ctx context.Context, in WrongAnswer) error {
	kind := in.Kind
	if kind == "" {
		kind = ProofOfWork // the client may not be able to show images
	}
	o := createOptions{kind: kind, points: requestPoints}
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
