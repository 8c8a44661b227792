package system_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// notes returns the texts of the log of the order in a language.
func (p *payingBuyer) notes(t *testing.T, language string) (notes []string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": `query($o: ID!) { order(by: { id: $o }) { timeline { note } } }`, "variables": map[string]any{"o": p.order}})
	if err != nil {
		t.Fatal(err)
	}
	res := p.from(t, p.url, http.MethodPost, string(body), "Sec-Fetch-Site", "same-origin", "Accept-Language", language, "Authorization", "Bearer "+p.token)
	var out answer
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	var data struct {
		Order struct{ Timeline []struct{ Note string } }
	}
	out.into(t, &data)
	for _, e := range data.Order.Timeline {
		notes = append(notes, e.Note)
	}
	return notes
}

func TestTheHistoryOfAnOrderNamesTheRefundedUnits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	p := &payingBuyer{site: s, made: s.seed(seed.Input{Users: 1, Stock: 3, PurchaseLimit: 3}), operator: s.staff("ann@example.com", "OPERATOR"), second: s.staff("bob@example.com", "OPERATOR")}
	p.token = p.made.Users[0].AccessToken
	p.order = s.paid(p.token, p.boughtUnits(3))
	p.askUnit(uuid.NewString())
	p.asked(p.token, `mutation($o: ID!, $k: String!) { requestRefund(input: {orderId: $o, reason: "too big", idempotencyKey: $k}) { userErrors { code } } }`,
		map[string]any{"o": p.order, "k": uuid.NewString()})
	asked, _ := s.refunds(p.operator, "last: 1")
	if why := s.mutate(p.operator, "decideRefund", "order { status }", map[string]any{"refundId": asked[0].ID, "approve": false, "note": "it was used"}).why(); why != "" {
		t.Fatalf("decideRefund: %s", why)
	}
	p.voidUnit("")
	p.void()
	testenv.Eventually(t, testenv.Wait, func() bool { status, _ := p.refundedUnits(); return status == "REFUNDED" }, "all units are refunded")
	for language, want := range map[string][]string{
		"en": {
			"", "",
			"A refund of 1 of 3 units was asked for. one is enough", "The refund of 1 of 3 units was approved.", "The money of 1 of 3 units went back.",
			"A refund of 2 of 3 units was asked for. too big", "The refund of 2 of 3 units was refused. it was used",
			"The shop refunds 1 of 3 units. cracked", "The money of 1 of 3 units went back.",
			"The shop refunds 1 of 3 units. cracked", "The money of 1 of 3 units went back.",
		},
		"zh-CN": {
			"", "",
			"已申请退款：1 件（共 3 件）。 one is enough", "退款已批准：1 件（共 3 件）。", "款项已退回：1 件（共 3 件）。",
			"已申请退款：2 件（共 3 件）。 too big", "退款被拒绝：2 件（共 3 件）。 it was used",
			"商家已发起退款：1 件（共 3 件）。 cracked", "款项已退回：1 件（共 3 件）。",
			"商家已发起退款：1 件（共 3 件）。 cracked", "款项已退回：1 件（共 3 件）。",
		},
	} {
		if got := p.notes(t, language); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}
