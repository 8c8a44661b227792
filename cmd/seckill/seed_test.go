package main

import (
	"encoding/json"
	"strings"
	"testing"

	"seckill/ent/order"
	"seckill/ent/sale"
	"seckill/ent/user"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
)

func TestASeedIsRemovedAndNothingElse(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_PROFILE=production", "SECKILL_SANDBOX=trial")
	made := func() (made seed.Result) {
		got := command(t, environ, "seed", "--users", "3", "--stock", "2", "--yes-make-test-buyers", "--json")
		if err := json.Unmarshal([]byte(got.stdout), &made); err != nil {
			t.Fatalf("%v: %s", err, got.stderr)
		}
		return made
	}
	test, used := made(), made()
	command(t, environ, "user", "create", "--account", "clerk@example.com", "--role", "customer", "--password", "a long enough password").wants(t, exitOK)
	db := database(t, environ)
	byAccount := func(account string) id.User {
		t.Helper()
		return db.Ent.User.Query().Where(user.Account(account)).OnlyX(t.Context()).ID
	}
	unpaid := ordered(t, environ, test, byAccount(test.Users[0].Account))
	foreign := ordered(t, environ, used, byAccount("clerk@example.com"))

	got := command(t, environ, "seed", "--remove")
	got.wants(t, exitFinding)
	for _, part := range []string{
		"removed  " + test.SaleID, "accounts 3 removed",
		"kept     " + used.SaleID + ": it has 1 orders of accounts that were not made by seed: end it on its page instead",
	} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("it does not say %q:\n%s%s", part, got.stdout, got.stderr)
		}
	}
	for public, want := range map[string]sale.Status{test.SaleID: sale.StatusCANCELLED, used.SaleID: sale.StatusPREHEATED} {
		parsed, err := id.ParseSale(public)
		if err != nil {
			t.Fatal(err)
		}
		if row := db.Ent.Sale.GetX(t.Context(), parsed); row.Status != want || row.WasPublic {
			t.Errorf("sale %s is %s, shown %t; want %s", public, row.Status, row.WasPublic, want)
		}
	}
	for of, want := range map[id.Order]order.Status{unpaid: order.StatusCANCELLED, foreign: order.StatusPENDING_PAYMENT} {
		if row := db.Ent.Order.GetX(t.Context(), of); row.Status != want {
			t.Errorf("order %s is %s, want %s", of, row.Status, want)
		}
	}
	var accounts []string
	for _, u := range db.Ent.User.Query().AllX(t.Context()) {
		accounts = append(accounts, u.Account)
	}
	// three of the other sale, the clerk, and the row that the order of the removed sale names
	all := strings.Join(accounts, " ")
	if len(accounts) != 5 || strings.Contains(all, test.Users[0].Account) || strings.Count(all, "deleted ") != 1 || !strings.Contains(all, "clerk@example.com") ||
		!strings.Contains(all, used.Users[2].Account) {
		t.Errorf("accounts %q", accounts)
	}
	command(t, environ, "audit", "--sale", test.SaleID).wants(t, exitOK)
	again := command(t, environ, "seed", "--remove", "--json")
	if want := `{"sales":[],"accounts":0,"kept":[{"what":"` + used.SaleID; !strings.HasPrefix(again.stdout, want) || strings.Contains(again.stdout, test.SaleID) {
		t.Errorf("the second time: %s%s", again.stdout, again.stderr)
	}
}
