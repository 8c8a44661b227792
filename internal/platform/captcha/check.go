package captcha

import (
	"context"
	"fmt"

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

// Try is an answer in its scope, for CheckAll.
type Try struct {
	Scope Scope
	Claim Claim
}

// record returns the shard and the field of the record that counts the try.
func (t Try) record() (shard int, field string) {
	if t.Scope.Purpose.OfSale() {
		return t.Scope.shard(), t.Scope.record()
	}
	return id.ShardOf(id.Sale(t.Claim.nonce)), t.Claim.nonce.String()
}

// Check verifies an answer and uses it up if it is right. A refusal is Invalid or
// Required and contains the next challenge.
func (s *Service) Check(ctx context.Context, scope Scope, a Answer) error {
	a, err := s.Exchange(ctx, scope, a)
	if err != nil {
		return err
	}
	claim := s.Claim(scope, a)
	verdicts, err := s.CheckAll(ctx, []Try{{scope, claim}})
	if err != nil || verdicts[0] == Right {
		return err
	}
	return s.Refuse(ctx, WrongAnswer{Scope: scope, Answer: a, Verdict: verdicts[0], Kind: claim.Kind})
}

// CheckAll verifies the answers of different users in one sale, or a single answer, in one
// call, and uses up those that are right.
func (s *Service) CheckAll(ctx context.Context, tries []Try) ([]Verdict, error) {
	verdicts := make([]Verdict, len(tries))
	var known []int // indexes
	for i, t := range tries {
		verdicts[i] = t.Claim.Verdict
		if t.Claim.Verdict != NotOpen {
			known = append(known, i)
		}
	}
	if len(known) == 0 {
		return verdicts, nil
	}
	first := tries[known[0]]
	rules, err := s.rules(ctx, first.Scope.Sale)
	if err != nil {
		return nil, err
	}
	opens := int64(0)
	if !rules.Opens.IsZero() {
		opens = rules.Opens.UnixMilli()
	}
	args := append(make([]any, 0, 3+3*len(known)), s.cfg.Life.Milliseconds(), s.RecordLife().Milliseconds(), opens)
	for _, i := range known {
		_, field := tries[i].record()
		args = append(args, field, string(verdicts[i]), tries[i].Claim.Created)
	}
	shard, _ := first.record()
	reply, err := checkScript.Run(ctx, s.cfg.Client, []string{s.cfg.Keys.Answers(shard, first.Scope.Sale)}, args...).
		StringSlice()
	if err == nil && len(reply) != len(known) {
		err = fmt.Errorf("script replied %d verdicts for %d answers", len(reply), len(known))
	}
	if err != nil {
		return nil, unavailable("check captcha", err)
	}
	for k, i := range known {
		verdicts[i] = Verdict(reply[k])
	}
	return verdicts, nil
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
