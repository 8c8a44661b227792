package system_test

import (
	"encoding/json"
	"testing"
	"time"
)

func TestASaleIsSavedAsATemplateFromWhichDraftsAreCreated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann, bob := s.staff("ann@example.com", "OPERATOR"), s.staff("bob@example.com", "OPERATOR")
	original := s.draft(ann)
	if p := s.mutate(ann, "setSaleSwitches", saleParts, map[string]any{"saleId": original, "limitBurst": 7}); p.why() != "" {
		t.Fatalf("setSaleSwitches: %s", p.why())
	}
	for range 2 { // the second time it is replaced
		if p := s.mutate(ann, "saveSaleTemplate", "template { id }", map[string]any{"saleId": original, "name": "Every autumn"}); p.why() != "" {
			t.Fatalf("saveSaleTemplate: %+v", p.UserErrors)
		}
	}
	if p := s.mutate(ann, "saveSaleTemplate", "template { id }", map[string]any{"saleId": original, "name": " "}); p.why() != "INVALID_INPUT" {
		t.Errorf("a template without a name: %q", p.why())
	}
	var data struct {
		SaleTemplates []struct {
			ID, Name, Title         string
			ItemCount, LastsSeconds int
			SavedBy                 struct{ DisplayName string }
		}
	}
	s.ask(bob, `{ saleTemplates { id name title itemCount lastsSeconds savedBy { displayName } } }`, nil).into(t, &data)
	if len(data.SaleTemplates) != 1 {
		t.Fatalf("templates %+v", data.SaleTemplates)
	}
	saved := data.SaleTemplates[0]
	if saved.Name != "Every autumn" || saved.Title != "Autumn" || saved.ItemCount != 1 || saved.LastsSeconds != 3600 || saved.SavedBy.DisplayName == "" {
		t.Errorf("template %+v", saved)
	}
	starts := time.Now().UTC().Truncate(time.Second).Add(24 * time.Hour)
	const parts = `sale { id status title rules startsAt endsAt switches { limitBurst } items { price { amount } stock { total } goods { name } } }`
	made := s.mutate(bob, "createSaleFromTemplate", parts, map[string]any{"templateId": saved.ID, "startsAt": starts.Format(time.RFC3339)})
	if made.why() != "" {
		t.Fatalf("createSaleFromTemplate: %+v", made.UserErrors)
	}
	text, err := json.Marshal(made.Sale["items"])
	if err != nil || string(text) != `[{"goods":{"name":"Kettle"},"price":{"amount":"49.00"},"stock":{"total":7}}]` {
		t.Errorf("items %s %v", text, err)
	}
	ends, err := time.Parse(time.RFC3339, made.Sale["endsAt"].(string))
	if err != nil || !ends.Equal(starts.Add(time.Hour)) || made.Sale["status"] != "DRAFT" || made.Sale["rules"] != "One each." || made.Sale["id"] == original {
		t.Errorf("the draft: %+v", made.Sale)
	}
	if burst := made.Sale["switches"].(map[string]any)["limitBurst"]; burst != 7.0 {
		t.Errorf("the draft has the limit %v", burst)
	}
	past := map[string]any{"templateId": saved.ID, "startsAt": starts.Add(-48 * time.Hour).Format(time.RFC3339)}
	if p := s.mutate(bob, "createSaleFromTemplate", parts, past); p.why() != "INVALID_INPUT" {
		t.Errorf("a sale that starts in the past: %q", p.why())
	}
	if p := s.mutate(bob, "deleteSaleTemplate", "template { name }", map[string]any{"templateId": saved.ID}); p.why() != "" {
		t.Errorf("deleteSaleTemplate: %q", p.why())
	}
	if p := s.mutate(bob, "createSaleFromTemplate", parts, past); p.why() != "NOT_FOUND" {
		t.Errorf("a deleted template is used: %q", p.why())
	}
}
