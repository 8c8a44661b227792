package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"

	"seckill/internal/platform/auth"
)

func roots(s *ast.Schema) []*ast.Definition {
	return []*ast.Definition{s.Query, s.Mutation, s.Subscription}
}

// The description of each root field says who may call it, as its @auth demands.
func TestDescriptionsSayWhoMayCall(t *testing.T) {
	t.Parallel()
	for _, root := range roots(Schema()) {
		for _, f := range root.Fields {
			text := strings.ReplaceAll(f.Description, "\n", " ")
			q := requirementOf(f.Directives)
			switch {
			case q != nil && !strings.HasSuffix(text, " "+sentenceOf(q)):
				t.Errorf("%s.%s: the description does not end with %q: %s", root.Name, f.Name, sentenceOf(q), text)
			case q == nil && strings.Contains(text, " For "):
				t.Errorf("%s.%s is open to everyone: %s", root.Name, f.Name, text)
			}
		}
	}
}

func TestFieldsOfBuyersComeFirst(t *testing.T) {
	t.Parallel()
	for _, root := range roots(Schema()) {
		staff := ""
		for _, f := range root.Fields {
			q := requirementOf(f.Directives)
			if q != nil && q.role != "CUSTOMER" {
				staff = f.Name
			} else if staff != "" {
				t.Errorf("%s.%s, for buyers, comes after %s", root.Name, f.Name, staff)
			}
		}
	}
}

func TestPartsOfTheSchemaAreSchemas(t *testing.T) {
	t.Parallel()
	for part, want := range map[Part]struct{ has, lacks string }{
		CustomerPart: {"Query.order Mutation.placeOrder Mutation.login Subscription.saleStock Order.payments Node.id WaitlistEntry.id SoldOutError.item",
			"Query.orders Mutation.approveSale Sale.status Order.ledger Intervention.id ServiceToken.id WebhookEvent.id CreateSaleInput.title"},
		StaffPart: {"Query.orders Query.order Mutation.approveSale Mutation.login Sale.status Order.ledger Intervention.id OrderEventData.number",
			"Mutation.placeOrder Query.myOrders Mutation.saveAddress PlaceOrderInput.itemId"},
		ServicePart: {"Query.orders Query.events Query.sales Mutation.upsertSale Mutation.setFulfilment Order.ledger OrderEventData.number",
			"Mutation.login Mutation.placeOrder Mutation.approveSale Query.users Query.inbox Subscription.myOrderUpdates"},
	} {
		var text strings.Builder
		formatter.NewFormatter(&text).FormatSchema(SchemaPart(part))
		s, err := gqlparser.LoadSchema(&ast.Source{Name: string(part), Input: text.String()})
		if err != nil {
			t.Errorf("%s is no valid schema: %v", part, err)
			continue
		}
		has := func(field string) bool {
			name, field, _ := strings.Cut(field, ".")
			return s.Types[name] != nil && s.Types[name].Fields.ForName(field) != nil
		}
		for _, field := range strings.Fields(want.has) {
			if !has(field) {
				t.Errorf("%s lacks %s", part, field)
			}
		}
		for _, field := range strings.Fields(want.lacks) {
			if has(field) {
				t.Errorf("%s has %s", part, field)
			}
		}
		whole := Schema()
		for _, root := range roots(whole) {
			for _, f := range root.Fields {
				q := requirementOf(f.Directives)
				if has(root.Name+"."+f.Name) && q != nil &&
					(part == CustomerPart && q.role != "CUSTOMER" || part == ServicePart && q.scope == "") {
					t.Errorf("%s has %s.%s", part, root.Name, f.Name)
				}
			}
		}
		for name, def := range s.Types {
			if len(def.Fields) == 0 && (def.Kind == ast.Object || def.Kind == ast.InputObject) {
				t.Errorf("%s: %s has no fields", part, name)
			}
		}
	}
}

// sentenceOf returns the end of the description of a root field with a requirement.
func sentenceOf(q *requirement) string {
	text := map[auth.Role]string{
		auth.Customer: "For signed-in users", auth.Operator: "For operators", auth.Admin: "For administrators",
	}[q.role]
	if q.scope != "" {
		text += fmt.Sprintf(", and service tokens with `%s`", string(q.scope)) // as in the schema
	}
	return text + "."
}
