package system_test

import (
	"testing"

	"seckill/internal/app"
	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// deletesItself deletes the account of a token.
func (s *site) deletesItself(token string) {
	s.t.Helper()
	if p := s.mutate(token, "deleteAccount", "deleted", map[string]any{"currentPassword": "a long password"}); p.why() != "" {
		s.t.Fatalf("deleteAccount: %s", p.why())
	}
}

// letExpire places an order and lets its payment deadline pass, n times.
func (s *site) letExpire(token string, made *seed.Result, n int) {
	s.t.Helper()
	db := s.database()
	for range n {
		order := parsed[id.Task](s.t, id.KindTask, s.bought(token, made))
		testenv.Eventually(s.t, testenv.Wait, func() bool {
			_, err := db.Ent.Order.Get(s.t.Context(), id.Order(order))
			return err == nil
		}, "the order is written")
		if _, err := db.SQL.ExecContext(s.t.Context(), "UPDATE orders SET payment_deadline = now() - interval '1 minute' WHERE id = $1", order.UUID()); err != nil {
			s.t.Fatal(err)
		}
		testenv.Eventually(s.t, testenv.Wait, func() bool {
			o, err := db.Ent.Order.Get(s.t.Context(), id.Order(order))
			return err == nil && o.Status == "EXPIRED" && !o.ReturnDue
		}, "the order expires and its unit returns")
	}
}

// What a deleted account bought and what it withheld count for a new account of the same mailbox while
// the sale runs, also where the limits count accounts, and in a gate that was rebuilt. Living accounts of
// one mailbox stay apart there.
func TestADeletedAccountStillCountsForTheNextOneOfItsMailbox(t *testing.T) {
	t.Parallel()
	s, server, client, keys := onOwnRedis(t)
	sales := map[string]*seed.Result{}
	for _, limitBy := range []string{"", "CONTACT"} {
		made := s.seed(seed.Input{Users: 1, Stock: 50, PermitRatio: 10})
		if _, err := s.database().SQL.ExecContext(t.Context(), "UPDATE sales SET limit_by = $1 WHERE id = $2", limitBy, parsed[id.Sale](t, id.KindSale, made.SaleID).UUID()); err != nil {
			t.Fatal(err)
		}
		sales[limitBy] = made
	}
	s.start("api", "worker", "scheduler")
	account := func(name string, verified bool) (token string) {
		_, err := app.CreateUser(t.Context(), s.cfg, app.NewUser{Account: name, Role: "CUSTOMER", DisplayName: name, Password: "a long password"})
		if err != nil {
			t.Fatal(err)
		}
		if verified {
			s.verified(seed.LoadUser{Account: name})
		}
		return s.login(name, "a long password")
	}
	old, unverified, late := account("joe@example.com", true), account("kim@example.com", false), account("lee@example.com", true)
	s.paid(old, s.bought(old, sales[""]))
	s.paid(old, s.bought(old, sales["CONTACT"]))
	s.paid(unverified, s.bought(unverified, sales[""]))
	s.letExpire(late, sales[""], reservation.MaxExpired)
	for _, token := range []string{old, unverified, late} {
		s.deletesItself(token)
	}
	next := map[string]string{
		"verified": account("joe+1@example.com", true), "no longer verified": account("joe+2@example.com", false),
		"never verified": account("kim+1@example.com", false), "late": account("lee+1@example.com", true),
	}
	refused := func(when string) {
		t.Helper()
		for _, c := range []struct{ who, limitBy, want string }{
			{"verified", "", "PURCHASE_LIMIT_REACHED"}, {"no longer verified", "", "PURCHASE_LIMIT_REACHED"}, {"never verified", "", "PURCHASE_LIMIT_REACHED"},
			{"verified", "CONTACT", "PURCHASE_LIMIT_REACHED"}, {"no longer verified", "CONTACT", "PURCHASE_LIMIT_REACHED"},
			{"late", "", "RATE_LIMITED"},
		} {
			if _, why := s.press(next[c.who], sales[c.limitBy]); why != c.want {
				t.Errorf("%s, %s, limit by %q: %q, want %s", when, c.who, c.limitBy, why, c.want)
			}
		}
	}
	refused("after the deletion")
	for name, what := range map[string]string{
		"ann@example.com": "one of two living accounts", "ann+1@example.com": "the other", "kim+2@example.com": "the reader of a mailbox that another account named",
	} {
		if _, why := s.press(account(name, true), sales[""]); why != "" {
			t.Errorf("%s: %s", what, why)
		}
	}
	server.FlushAll()
	for _, made := range sales {
		testenv.Eventually(t, testenv.Wait, func() bool {
			g := gateOf(t, client, keys, made)
			return g["epoch"] > "1" && g["gate"] == reservation.GateOpen
		}, "the gate is rebuilt")
	}
	refused("after a rebuild")
	for _, made := range sales {
		s.audit(made.SaleID)
	}
}
