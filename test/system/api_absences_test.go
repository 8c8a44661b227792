package system_test

import (
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
)

// TestRandomIdsAreRefusedAndOwnObjectsAreNot: one visitor and one user look up ids that
// nothing has; others at the same address, and what is on sale, are not concerned.
func TestRandomIdsAreRefusedAndOwnObjectsAreNot(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 5})
	s.awaitSale(made.SaleID)
	buyer, curious := made.Users[0].AccessToken, made.Users[1].AccessToken
	task := s.bought(buyer, made)
	const node = `query($id: ID!) { node(id: $id) { id } }`
	served := func(token, document, value string) bool {
		out := s.ask(token, document, map[string]any{"id": value})
		if code := out.code(); code != "" && code != "RATE_LIMITED" && code != "NOT_FOUND" {
			t.Fatalf("%s %s: %+v", document, value, out.Errors)
		}
		return out.code() != "RATE_LIMITED"
	}
	const tries = 300 // a visitor may look up 120, and 4 more a second
	answered := 0
	for i := range tries {
		ids := []string{id.New[id.Sale]().Public(), id.New[id.Item]().Public(), id.New[id.Goods]().Public()}
		if served("", node, ids[i%len(ids)]) {
			answered++
		}
	}
	if answered < 120 || answered > 250 {
		t.Errorf("a visitor was answered %d times of %d", answered, tries)
	}
	documents := []string{
		node, `query($id: ID!) { order(by: { id: $id }) { id } }`, `query($id: ID!) { orderTask(id: $id) { id } }`, `query($id: ID!) { myAttempts(saleId: $id) { total } }`,
	}
	answered = 0
	for i := range tries {
		ids := []string{id.New[id.Order]().Public(), id.New[id.Order]().Public(), id.New[id.Task]().Public(), id.New[id.Sale]().Public()}
		kinds := []string{id.New[id.Payment]().Public(), id.New[id.Refund]().Public(), id.New[id.Waitlist]().Public(), ids[0]}
		value := ids[i%4]
		if i%4 == 0 {
			value = kinds[i/4%4]
		}
		if served(curious, documents[i%4], value) {
			answered++
		}
	}
	if answered < 60 || answered > 200 {
		t.Errorf("a user was answered %d times of %d", answered, tries)
	}
	if !served("", node, made.SaleID) || !served(curious, node, made.ItemID) {
		t.Error("what is on sale was refused")
	}
	for range 100 {
		var data struct{ OrderTask *struct{ ID string } }
		out := s.ask(buyer, `query($id: ID!) { orderTask(id: $id) { id } }`, map[string]any{"id": task})
		if out.into(t, &data); data.OrderTask == nil {
			t.Fatalf("a buyer's own task: %+v", out.Errors)
		}
	}
}
