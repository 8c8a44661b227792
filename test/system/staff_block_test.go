package system_test

import (
	"testing"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// A blocked user keeps nothing: sockets and path tokens end with the sessions, unpaid
// orders are cancelled, places on waitlists are given up, and others get the units.
func TestBlockingAUserEndsWhatTheUserHolds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	admin := s.staff("carla@example.com", "ADMIN")
	first := s.seed(seed.Input{Users: 1, Stock: 1})
	token := s.login(first.Users[0].Account, first.Users[0].Password) // its session has a row, unlike those of the seed
	orderID := "ord_" + s.bought(token, first)[len("tsk_"):]
	second, _ := s.soldOut(seed.Input{Users: 1, Stock: 1})
	s.joined(token, second.ItemID)
	path, _, why := s.knock("issueSeckillPath", token, s.seed(seed.Input{Users: 1, Stock: 5}))
	if path == "" {
		t.Fatalf("no path: %s", why)
	}
	statusOf := func() string {
		var data struct{ Order *struct{ Status string } }
		s.ask(admin, `query($o: ID!) { order(by: { id: $o }) { status timeline { note } } }`, map[string]any{"o": orderID}).into(t, &data)
		if data.Order == nil {
			return ""
		}
		return data.Order.Status
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return statusOf() == "PENDING_PAYMENT" }, "the order is written")
	k := s.dial(token)

	out := s.mutate(admin, "disableUser", "user { disabled }", map[string]any{"userId": s.userOf(token), "note": "resells"})
	if out.why() != "" {
		t.Fatal(out.why())
	}
	for err := error(nil); err == nil; {
		var f frame
		err = k.next(&f)
		if code := websocket.CloseStatus(err); err != nil && code != 4403 {
			t.Errorf("the socket ended with %v (%v)", code, err)
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return statusOf() == "CANCELLED" }, "the unpaid order is cancelled")
	testenv.Eventually(t, testenv.Wait, func() bool {
		return s.look(first.SaleID).Postgres.Available == 1 && s.look(first.SaleID).Redis.Stock == 1
	}, "its unit is on sale again")
	testenv.Eventually(t, testenv.Wait, func() bool {
		entry, err := s.database().Ent.WaitlistEntry.Query().Only(t.Context())
		return err == nil && entry.Status == "LEFT"
	}, "the place on the waitlist is given up")
	if got := s.ask(token, placeOrder, map[string]any{"in": order(first.ItemID, path)}).code(); got != "UNAUTHENTICATED" {
		t.Errorf("the path token is answered with %q", got)
	}
	s.audit(first.SaleID)
	s.audit(second.SaleID)
}

// The order of a task that no worker had written when its buyer deleted the account is
// cancelled, and has no personal data.
func TestATaskOfADeletedAccountGivesItsUnitBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PermitRatio: 10})
	token := s.login(made.Users[0].Account, made.Users[0].Password)
	s.saveAddress(token, home)
	s.bought(token, made)
	var data struct {
		DeleteAccount struct {
			Deleted bool
			UserErrors
		}
	}
	s.ask(token, `mutation($p: String!) { deleteAccount(input: {currentPassword: $p}) { deleted userErrors { code } } }`,
		map[string]any{"p": made.Users[0].Password}).into(t, &data)
	if !data.DeleteAccount.Deleted {
		t.Fatalf("the account is not deleted: %+v", data)
	}
	s.start("worker")
	testenv.Eventually(t, testenv.Wait, func() bool {
		order, err := s.database().Ent.Order.Query().Only(t.Context())
		return err == nil && order.Status == "CANCELLED"
	}, "its order is written and cancelled")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.look(made.SaleID).Redis.Stock == 1 }, "its unit is on sale again")
	if n, err := s.database().Ent.OrderRecipient.Query().Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d addresses are stored with orders, %v", n, err)
	}
	s.audit(made.SaleID)
}
