package captcha

import (
	"context"
	"slices"
	"sync"
	"testing"

	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// oneRule are the rules of all sales.
type oneRule Rules

func (r *oneRule) Captchas(context.Context, id.Sale) (Rules, error) { return Rules(*r), nil }

func TestASaleOffersTheKindsThatItSays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		rule := &oneRule{}
		s.cfg.Sales = rule
		scope := seckill()
		for _, c := range []struct {
			offered                                  []Kind
			text, math, anyone, work, withoutTheUser Kind
		}{
			{nil, Text, Math, Text, ProofOfWork, ProofOfWork},
			{[]Kind{Text}, Text, Text, Text, Text, Text},
			{[]Kind{Math, Text}, Text, Math, Text, Math, Text},
			{[]Kind{"SLIDE", Math}, Math, Math, Math, Math, Math},
			{[]Kind{Math, ProofOfWork}, Math, Math, Math, ProofOfWork, Math},
			{[]Kind{ProofOfWork}, ProofOfWork, ProofOfWork, ProofOfWork, ProofOfWork, ProofOfWork},
			{[]Kind{"AUDIO"}, ProofOfWork, ProofOfWork, ProofOfWork, ProofOfWork, ProofOfWork},
		} {
			rule.Kinds = c.offered
			got := []Kind{create(t, s, scope, Text).Kind, create(t, s, scope, Math).Kind, create(t, s, scope, "").Kind, create(t, s, scope, ProofOfWork).Kind}
			quiet, err := s.Create(t.Context(), CreateInput{Purpose: Seckill, Sale: scope.Sale, User: scope.User, Automatic: true})
			if err != nil {
				t.Fatal(err)
			}
			if want := []Kind{c.text, c.math, c.anyone, c.work, c.withoutTheUser}; !slices.Equal(append(got, quiet.Kind), want) {
				t.Errorf("offering %q: wishes for TEXT, MATH, none, PROOF_OF_WORK, an automatic one got %q, %q, want %q", c.offered, got, quiet.Kind, want)
			}
			next := wantInvalid(t, s, scope, wrong(create(t, s, scope, Text)))
			if next.Kind != c.text {
				t.Errorf("offering %q: the next after a wrong answer is %s, want %s", c.offered, next.Kind, c.text)
			}
		}
		if kind := create(t, s, Scope{Purpose: Login}, Text).Kind; kind != Text {
			t.Errorf("to sign in: %s", kind)
		}
	})
}

func TestASaleThatExcludesWorkGivesPicturesToEveryone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		s.cfg.Sales = &oneRule{Kinds: []Kind{Text}}
		s.images.wait = testenv.Wait
		var all sync.WaitGroup
		for n := range 40 { // ten times the pool
			all.Go(func() {
				scope := seckill()
				kind := ProofOfWork
				if n%2 == 0 {
					kind = Text
				}
				c, err := s.Create(t.Context(), CreateInput{Purpose: Seckill, Sale: scope.Sale, User: scope.User, Kind: kind})
				if err != nil || c.Kind != Text || c.Image == "" {
					t.Errorf("asked for %s: %s, %v", kind, c.Kind, err)
				}
			})
		}
		all.Wait()
		scope := seckill()
		if next := wantInvalid(t, s, scope, Answer{ChallengeID: "cap_unknown", Text: "x"}); next.Kind != Text {
			t.Errorf("after an unknown challenge: %s", next.Kind)
		}
	})
}
