package payment_test

import (
	"testing"

	"github.com/google/uuid"

	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/testenv"
)

// At most two orders of a user may expire in a sale; after that the gate refuses only
// this user for a while. A cancelled order does not count.
func TestWhoLetsTwoOrdersExpireHasToWait(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5)
	captchas, err := captcha.New(captcha.Config{
		Client: s.conn.Script, Keys: s.keys, Clock: s.clock, Secret: []byte("a secret of at least 32 bytes, for tests"), PowMax: 20,
	})
	s.must(err)
	paths := path.New(path.Config{Client: s.conn.Script, Keys: s.keys, Captchas: captchas})
	gate := func(user uuid.UUID) fault.Refusal {
		t.Helper()
		_, err := paths.Issue(t.Context(), path.IssueInput{Sale: s.sale, Item: s.item, User: user, Waived: true, Opens: opening})
		return testenv.Refusal(s.t, err)
	}
	bot, buyer := id.New(), id.New()
	for lapses := range 2 {
		if refusal := gate(bot); refusal != nil {
			t.Fatalf("after %d lapses: %v", lapses, refusal)
		}
		for _, user := range []uuid.UUID{bot, buyer} {
			o := s.place(user, 1)
			if o == nil {
				t.Fatal("nothing left")
			}
			if user == buyer {
				if _, err := s.pay.Cancel(t.Context(), o.ID, user, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.expirePayments()
	}
	wait, ok := gate(bot).(fault.Throttled)
	if !ok || wait.RetryAfter <= 0 {
		t.Errorf("after two lapses: %+v", gate(bot))
	}
	for _, user := range []uuid.UUID{buyer, id.New()} {
		if refusal := gate(user); refusal != nil {
			t.Errorf("somebody else: %v", refusal)
		}
	}
	s.wantFigures(figures{available: 5, stock: 5})
}
