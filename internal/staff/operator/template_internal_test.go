package operator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Templates are stored as JSON with the names of the fields: a renamed field would be lost.
func TestATemplateOfThisReleaseIsRead(t *testing.T) {
	t.Parallel()
	const stored = `{"Draft":{"Title":"Drop","Slug":"","Reference":"","Rules":"One each.","StartsAt":"0001-01-01T00:00:00Z","EndsAt":"0001-01-01T00:00:00Z",` +
		`"PaymentWindow":900000000000,"PurchaseLimit":2,"HideExactStock":true,"RequiresAddress":true,"Requires":{"VerifiedContact":true,"AccountAge":3600000000000},"LimitBy":{"Contact":true,"Address":true},` +
		`"Access":[{"kind":"LIST","name":"Members","source":"vip"},{"kind":"ALL","after":1800}],"Draw":{"entrySeconds":600,"offerSeconds":3600},"Accent":"#b3261e",` +
		`"Items":[{"Goods":"01890a5d-ac96-774b-bcce-b302099a8057","Price":{"Minor":9900,"Currency":"CNY"},"Stock":5,"PurchaseLimit":1}],` +
		`"Switches":{"captchaRequired":true,"captchaKinds":["IMAGE"],"proofOfWorkMax":9,"permitPerMille":1500,"inflowPerSecond":7,"limitBurst":5,"limitPerSecond":1}},"Lasts":7200000000000}`
	want := content{Lasts: 2 * time.Hour, Draft: SaleDraft{
		Title: "Drop", Rules: "One each.", PaymentWindow: 15 * time.Minute, PurchaseLimit: 2, HideExactStock: true, RequiresAddress: true,
		Requires: sale.Requirements{VerifiedContact: true, AccountAge: time.Hour}, LimitBy: &sale.LimitBy{Contact: true, Address: true}, Accent: "#b3261e",
		Access: &access.Rules{{Kind: access.List, Name: "Members", Source: "vip"}, {Kind: access.All, After: 1800}},
		Draw:   sale.DrawRules{EntrySeconds: 600, OfferSeconds: 3600},
		Items: []ItemDraft{{
			Goods: id.Goods(uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")), Price: money.Amount{Minor: 9900, Currency: "CNY"}, Stock: 5, PurchaseLimit: 1,
		}},
		Switches: &sale.Switches{CaptchaRequired: true, CaptchaKinds: []string{"IMAGE"}, PowMax: 9, PermitPerMille: 1500, InflowPerSecond: 7, LimitBurst: 5, LimitPerSecond: 1},
	}}
	var got content
	decoder := json.NewDecoder(strings.NewReader(stored))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	again, err := json.Marshal(got)
	if err != nil || string(again) != stored {
		t.Errorf("a new field is not in this test: %v\n%s", err, again)
	}
}
