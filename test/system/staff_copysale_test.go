package system_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill/internal/testenv"
)

// draft creates a sale of one product as a draft and returns its id.
func (s *site) draft(token string) string {
	s.t.Helper()
	price := map[string]any{"amount": "49.00", "currencyCode": "CNY"}
	goods := s.mutate(token, "createGoods", "goods { id }", map[string]any{"name": "Kettle", "listPrice": price})
	now := time.Now().UTC()
	p := s.mutate(token, "createSale", saleParts, map[string]any{
		"title": "Autumn", "rules": "One each.", "startsAt": now.Add(time.Hour).Format(time.RFC3339Nano), "endsAt": now.Add(2 * time.Hour).Format(time.RFC3339Nano),
		"items": []any{map[string]any{"goodsId": goods.Goods["id"], "price": price, "stock": 7}},
	})
	if p.why() != "" {
		s.t.Fatalf("createSale: %+v", p.UserErrors)
	}
	return p.Sale["id"].(string)
}

// says waits until the feed of a sale has a line.
func (s *site) says(token, saleID, line string) {
	s.t.Helper()
	k := s.dial(token)
	k.send(frame{ID: "log", Type: "subscribe", Payload: subscription(s.t, `subscription($id: ID!) { saleFeed(saleId: $id, after: "0-0") { message } }`, saleID)})
	for seen := ""; !strings.Contains(seen, line); {
		var event struct {
			Data struct{ SaleFeed struct{ Message string } }
		}
		f := k.read()
		if err := json.Unmarshal(f.Payload, &event); err != nil || f.Type != "next" {
			s.t.Fatalf("%+v %s %v", f, f.Payload, err)
		}
		seen += event.Data.SaleFeed.Message + "\n"
	}
}

func TestASubmissionIsWithdrawnAndADraftDiscarded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann, bob, admin := s.staff("ann@example.com", "OPERATOR"), s.staff("bob@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN")
	saleID := s.draft(ann)
	if p := s.mutate(ann, "withdrawSale", saleParts, map[string]any{"saleId": saleID}); p.why() != "CONFLICT" {
		t.Errorf("a draft is withdrawn: %q", p.why())
	}
	s.onSale(ann, "submitSale", saleID, "", "PENDING_APPROVAL")
	s.onSale(ann, "withdrawSale", saleID, "a typing error", "DRAFT")
	if p := s.mutate(admin, "approveSale", saleParts, map[string]any{"saleId": saleID}); p.why() != "CONFLICT" {
		t.Errorf("a withdrawn sale is approved: %q", p.why())
	}
	if p := s.mutate(bob, "discardSale", saleParts, map[string]any{"saleId": saleID}); p.why() != "CONFLICT" {
		t.Errorf("another operator discards the draft: %q", p.why())
	}
	s.onSale(ann, "discardSale", saleID, "not this year", "CANCELLED")
	seen := func(token, saleID string) string {
		return string(s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { phase } sales(first: 100) { edges { node { id } } } }`, map[string]any{"id": saleID}).Data)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return strings.Contains(seen(ann, saleID), `"CANCELLED"`) }, "the discarded draft is read")
	if data := seen("", saleID); strings.Contains(data, "CANCELLED") || strings.Contains(data, saleID) {
		t.Errorf("visitors see a discarded draft: %s", data)
	}
	scheduled, _ := s.prepare(ann, admin, 5, 10*time.Minute)
	s.onSale(admin, "endSale", scheduled, "not this year", "CANCELLED")
	testenv.Eventually(t, testenv.Wait, func() bool { return strings.Contains(seen("", scheduled), `"CANCELLED"`) }, "visitors see that a public sale was cancelled")
	s.says(ann, saleID, "OPERATOR: took it back from approval (Draft)")
	s.says(ann, saleID, "OPERATOR: discarded the sale (Cancelled)")
	s.audit(saleID)
}

func TestASaleIsDuplicatedAsADraft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	original := s.draft(ann)
	const parts = `sale { id status title rules startsAt slug items { price { amount } stock { total } goods { name } } }`
	now := time.Now().UTC().Truncate(time.Second)
	in := map[string]any{"saleId": original, "startsAt": now.Add(24 * time.Hour).Format(time.RFC3339), "endsAt": now.Add(25 * time.Hour).Format(time.RFC3339)}
	made := s.mutate(ann, "duplicateSale", parts, in)
	if made.why() != "" {
		t.Fatalf("duplicateSale: %+v", made.UserErrors)
	}
	var before map[string]any
	testenv.Eventually(t, testenv.Wait, func() bool {
		var data struct{ Sale map[string]any }
		s.ask(ann, `query($id: ID!) { `+strings.Replace(parts, "sale {", "sale(by: {id: $id}) {", 1)+` }`, map[string]any{"id": original}).into(t, &data)
		before = data.Sale
		return before != nil
	}, "the original is read")
	for _, field := range []string{"title", "rules", "items"} {
		was, _ := json.Marshal(before[field])   // decoded JSON
		is, _ := json.Marshal(made.Sale[field]) // as above
		if string(was) != string(is) {
			t.Errorf("%s is %s, want %s", field, is, was)
		}
	}
	if made.Sale["status"] != "DRAFT" || made.Sale["id"] == original || made.Sale["slug"] == before["slug"] {
		t.Errorf("the copy: %+v", made.Sale)
	}
	if starts, err := time.Parse(time.RFC3339, made.Sale["startsAt"].(string)); err != nil || !starts.Equal(now.Add(24*time.Hour)) {
		t.Errorf("the copy starts at %v, %v", made.Sale["startsAt"], err)
	}
	in["saleId"], in["endsAt"] = original, in["startsAt"]
	if p := s.mutate(ann, "duplicateSale", parts, in); p.why() != "INVALID_INPUT" {
		t.Errorf("a copy that ends when it starts: %q", p.why())
	}
	s.says(ann, made.Sale["id"].(string), "OPERATOR: created the sale (Draft)")
}
