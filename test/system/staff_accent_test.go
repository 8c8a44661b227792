package system_test

import "testing"

func TestBuyersGetTheShadesOfASalesAccent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api")
	operator := s.staff("ann@example.com", "OPERATOR")
	saleID := s.draft(operator)
	type shades struct{ Fill, Press, Text string }
	type payload struct {
		UpdateSale struct {
			Sale struct {
				Accent *struct {
					Color       string
					Light, Dark shades
				}
			}
			UserErrors []struct {
				Code, Message, Rule string
				Path                []string
			}
		}
	}
	update := func(accent any) (data payload) {
		t.Helper()
		s.ask(operator, `mutation($in: UpdateSaleInput!) { updateSale(input: $in) {
			sale { accent { color light { fill press text } dark { fill press text } } }
			userErrors { code message path ... on InputError { rule } } } }`,
			map[string]any{"in": map[string]any{"saleId": saleID, "accent": accent}}).into(t, &data)
		return data
	}
	got := update("#b3261e").UpdateSale
	if a := got.Sale.Accent; a == nil || a.Color != "#b3261e" || a.Light.Fill != "#b3261e" || a.Dark.Fill == "" || a.Dark.Text == a.Light.Text {
		t.Fatalf("%+v", got)
	}
	refused := update("#ff6a00").UpdateSale.UserErrors
	if len(refused) != 1 || refused[0].Code != "INVALID_INPUT" || refused[0].Rule != "contrast: 2.87" ||
		refused[0].Message != "Accent colour: its contrast with white is 2.87:1, and 4.5:1 is the least. Choose a darker colour." {
		t.Errorf("%+v", refused)
	}
	if got := update(nil).UpdateSale; got.Sale.Accent != nil || len(got.UserErrors) != 0 {
		t.Errorf("without: %+v", got)
	}
}
