package payment_test

import (
	"testing"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// At most two orders of a user may expire in a sale; after that the gate refuses only
// this user for a while. An order that is cancelled at once does not count.
func TestWhoLetsTwoOrdersExpireHasToWait(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5)
	captchas, err := captcha.New(captcha.Config{
		Client: s.conn.Script, Keys: s.keys, Clock: s.clock, Secret: []byte("a secret of at least 32 bytes, for tests"), PowMax: 20,
	})
	s.must(err)
	paths := path.New(path.Config{
		Client: s.conn.Script, Keys: s.keys, Captchas: captchas, Tokens: path.NewTokens([][]byte{[]byte("a secret of at least 32 bytes, for tests")}),
	})
	gate := func(user id.User) fault.Refusal {
		t.Helper()
		_, err := paths.Issue(t.Context(), path.IssueInput{Sale: s.sale, Item: s.item, User: user, Waived: true, Opens: opening})
		return testenv.Refusal(s.t, err)
	}
	bot, buyer := id.New[id.User](), id.New[id.User]()
	for expiries := range 2 {
		if refusal := gate(bot); refusal != nil {
			t.Fatalf("after %d expiries: %v", expiries, refusal)
		}
		for _, user := range []id.User{bot, buyer} {
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
		t.Errorf("after two expiries: %+v", gate(bot))
	}
	for _, user := range []id.User{buyer, id.New[id.User]()} {
		if refusal := gate(user); refusal != nil {
			t.Errorf("another user: %v", refusal)
		}
	}
	s.wantFigures(figures{available: 5, stock: 5})
}

// Units are withheld from others by orders that are cancelled late, or again and again.
func TestLateAndRepeatedCancellationsCountLikeExpiredOrders(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5)
	expiries := func(user id.User) int {
		n, _ := s.conn.Cmd.Get(t.Context(), s.keys.Expiries(id.ShardOf(s.sale), s.sale, user)).Int()
		return n
	}
	cancel := func(user id.User, after time.Duration) {
		t.Helper()
		o := s.place(user, 1)
		if o == nil {
			t.Fatal("nothing left")
		}
		s.clock.Advance(after)
		if _, err := s.pay.Cancel(t.Context(), o.ID, user, ""); err != nil {
			t.Fatal(err)
		}
		s.step(s.returner.Step)
	}
	late, again := id.New[id.User](), id.New[id.User]()
	cancel(late, order.CancelGrace+time.Second)
	if n := expiries(late); n != 1 {
		t.Errorf("%d expiries after a late cancellation", n)
	}
	for i, want := range []int{0, 0, 1, 2} {
		if cancel(again, time.Second); expiries(again) != want {
			t.Errorf("%d expiries after %d cancellations, want %d", expiries(again), i+1, want)
		}
	}
	o := s.place(late, 1)
	s.clock.Advance(order.CancelGrace + time.Second)
	if _, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New[id.User](), Note: "mistake"}); err != nil {
		t.Fatal(err)
	}
	s.step(s.returner.Step)
	if n := expiries(late); n != 1 {
		t.Errorf("%d expiries after an operator voided an order", n)
	}
	s.wantFigures(figures{available: 5, stock: 5})
}
