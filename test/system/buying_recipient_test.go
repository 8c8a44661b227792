package system_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

// toAddresses seeds a sale whose orders have an address.
func (s *site) toAddresses(users int) *seed.Result {
	s.t.Helper()
	made := s.seed(seed.Input{Users: users, Stock: 5, PermitRatio: 10})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.database().Ent.Sale.UpdateOneID(saleID).SetRequiresAddress(true).AddRevision(1).Exec(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.awaitNeedsAddress(made)
	return made
}

// home is an address as the API takes and returns it, with words that nothing else has.
var home = map[string]any{
	"name": "Lin Xiaoyu", "phone": "+8613800001111", "country": "CN", "region": "Zhejiang", "city": "Hangzhou", "street": "90 Wensan Road", "postalCode": "310012",
}

const recipientParts = `recipient { name phone country region city street postalCode }`

func (s *site) saveAddress(token string, in map[string]any) (addressID string) {
	s.t.Helper()
	var data struct {
		SaveAddress struct {
			Address *struct{ ID string }
			UserErrors
		}
	}
	s.ask(token, `mutation($in: SaveAddressInput!) { saveAddress(input: $in) { address { id } userErrors { code } } }`, map[string]any{"in": in}).into(s.t, &data)
	if data.SaveAddress.Address == nil {
		s.t.Fatalf("saveAddress: %s", data.SaveAddress.why())
	}
	return data.SaveAddress.Address.ID
}

func (s *site) needsAddress(token, saleID string) bool {
	s.t.Helper()
	var data struct {
		Sale struct{ Viewer struct{ NeedsAddress bool } }
	}
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { viewer { needsAddress } } }`, map[string]any{"id": saleID}).into(s.t, &data)
	return data.Sale.Viewer.NeedsAddress
}

// buysOne buys a unit with a fresh path and returns the order.
func (s *site) buysOne(token string, made *seed.Result) (orderID string) {
	s.t.Helper()
	path, ticket, why := s.knock("issueSeckillPath", token, made)
	if path == "" {
		s.t.Fatalf("no path: %+v %s", ticket, why)
	}
	p, err := s.place(token, order(made.ItemID, path))
	if err != nil || p.OrderTask == nil {
		s.t.Fatalf("placed %+v %v", p, err)
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool { return s.taskStatus(token, p.OrderTask.ID) == "SUCCEEDED" }, "the order is written")
	task, err := id.ParseTask(p.OrderTask.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return id.Order(task).Public()
}

func TestABuyerWithoutAnAddressIsRefusedBeforeThePath(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.toAddresses(2)
	buyer := made.Users[0].AccessToken
	for _, field := range []string{"issueSeckillPath", "enterQueue"} {
		if path, ticket, why := s.knock(field, buyer, made); why != "ADDRESS_REQUIRED" || path != "" || ticket != nil {
			t.Errorf("%s without an address: %q %+v %s", field, path, ticket, why)
		}
	}
	if p := s.mutate(buyer, "joinWaitlist", "waitlistEntry { id }", map[string]any{"itemId": made.ItemID}); p.why() != "ADDRESS_REQUIRED" {
		t.Errorf("joinWaitlist without an address: %s", p.why())
	}
	if !s.needsAddress(buyer, made.SaleID) {
		t.Error("needsAddress is false without an address")
	}
	saved := s.saveAddress(buyer, home)
	if s.needsAddress(buyer, made.SaleID) {
		t.Error("needsAddress is true with an address")
	}
	s.buysOne(buyer, made)
	if p := s.mutate(made.Users[1].AccessToken, "removeAddress", "addresses { id }", map[string]any{"addressId": saved}); p.why() != "" {
		t.Errorf("removing what is not there: %s", p.why())
	}
	if s.needsAddress(buyer, made.SaleID) {
		t.Error("another user removed the address")
	}
	s.audit(made.SaleID)
}

func TestTheRecipientOfAnOrderReachesThoseWhoShipItAndNoLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.logs = &lockedBuffer{}
	s.start("api", "worker", "scheduler")
	admin := s.staff("admin@example.com", "ADMIN")
	_, erp := s.serviceToken(admin, "ORDERS_WRITE", "EVENTS_READ", "EXPORTS")
	made := s.toAddresses(2)
	buyer, other := made.Users[0].AccessToken, made.Users[1].AccessToken
	s.saveAddress(buyer, home)
	s.ask(buyer, `mutation { saveAddress(input: {name: "Lin Xiaoyu", phone: "wrong number", country: "CN", city: "Hangzhou", street: "90 Wensan Road"}) { userErrors { code } } }`, nil)
	orderID := s.buysOne(buyer, made)

	recipientOf := func(token string) map[string]any {
		t.Helper()
		var data struct {
			Order *struct{ Recipient map[string]any }
		}
		s.ask(token, `query($id: ID!) { order(by: { id: $id }) { `+recipientParts+` } }`, map[string]any{"id": orderID}).into(t, &data)
		if data.Order == nil {
			return nil
		}
		return data.Order.Recipient
	}
	for name, token := range map[string]string{"the buyer": buyer, "staff": admin, "the shop's system": erp} {
		got := recipientOf(token)
		for field, want := range home {
			if got[field] != want {
				t.Errorf("%s reads %s as %v, want %v", name, field, got[field], want)
			}
		}
	}
	if got := recipientOf(other); got != nil {
		t.Errorf("another buyer reads %v", got)
	}

	s.fulfils(buyer, erp, orderID)

	var data struct {
		Events struct {
			Edges []struct {
				Node struct{ Event, Payload string }
			}
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		out := s.ask(erp, `{ events(first: 50) { edges { node { event payload } } } }`, nil)
		out.into(t, &data)
		return strings.Contains(string(out.Data), "ORDER_FULFILMENT_CHANGED")
	}, "the events can be read")
	var kinds []string
	for _, e := range data.Events.Edges {
		if !strings.HasPrefix(e.Node.Event, "ORDER_") {
			continue
		}
		kinds = append(kinds, e.Node.Event)
		var sent struct {
			Data struct {
				Recipient  map[string]any
				Fulfilment struct{ State, Carrier, TrackingURL string }
			}
		}
		if err := json.Unmarshal([]byte(e.Node.Payload), &sent); err != nil || sent.Data.Recipient["street"] != home["street"] || sent.Data.Recipient["phone"] != home["phone"] {
			t.Errorf("the event %s has %s (%v)", e.Node.Event, e.Node.Payload, err)
		}
		if e.Node.Event == "ORDER_FULFILMENT_CHANGED" && (sent.Data.Fulfilment.State != "SHIPPED" || sent.Data.Fulfilment.TrackingURL != "https://track.example.com/1") {
			t.Errorf("the fulfilment in %s", e.Node.Payload)
		}
	}
	if want := []string{"ORDER_PLACED", "ORDER_PAID", "ORDER_FULFILMENT_CHANGED"}; !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
	row := s.exported(erp, made.SaleID)
	if row["recipient_name"] != home["name"] || row["recipient_phone"] != "'+8613800001111" || row["recipient_street"] != home["street"] {
		t.Errorf("the export has %q", row)
	}
	logged := s.logs.String()
	if !strings.Contains(logged, "\n") {
		t.Error("nothing was logged: the test sees nothing")
	}
	for _, word := range []string{"Lin Xiaoyu", "138 0000 1111", "Wensan", "310012", "wrong number"} {
		if strings.Contains(logged, word) {
			t.Errorf("the log has %q", word)
		}
	}
}

// fulfils pays an order and says twice that it is shipped: the buyer receives it once.
func (s *site) fulfils(buyer, erp, orderID string) {
	s.t.Helper()
	ship := map[string]any{"orderId": orderID, "state": "SHIPPED", "carrier": "SF Express", "trackingUrl": "https://track.example.com/1"}
	if p := s.mutate(erp, "setFulfilment", "order { revision }", ship); p.why() != "CONFLICT" {
		s.t.Errorf("shipped before it was paid: %q", p.why())
	}
	_, page := s.pay(buyer, orderID)
	s.choose(page, "approve")
	events := s.orderEvents(buyer, `orderStatus(orderId: "`+orderID+`")`)
	revision := 0
	for e := range events {
		if e.Status == "PAID" {
			revision = e.Revision
			break
		}
	}
	for range 2 {
		if p := s.mutate(erp, "setFulfilment", "order { revision }", ship); p.why() != "" || p.Order["revision"] != float64(revision+1) {
			s.t.Errorf("shipped: %s %v, want revision %d", p.why(), p.Order, revision+1)
		}
	}
	if e := <-events; e.Revision != revision+1 || e.Status != "PAID" {
		s.t.Errorf("the buyer receives %+v", e)
	}
	ship["trackingUrl"] = "http://track.example.com/1"
	if p := s.mutate(erp, "setFulfilment", "order { id }", ship); p.why() != "INVALID_INPUT" {
		s.t.Errorf("a tracking link without https: %q", p.why())
	}
	var data struct {
		Order struct {
			Fulfilment struct{ State, Carrier, TrackingURL string }
			Timeline   []struct{ Note string }
		}
	}
	s.ask(buyer, `query($id: ID!) { order(by: { id: $id }) { fulfilment { state carrier trackingUrl } timeline { note } } }`, map[string]any{"id": orderID}).into(s.t, &data)
	last := data.Order.Timeline[len(data.Order.Timeline)-1].Note
	if f := data.Order.Fulfilment; f.State != "SHIPPED" || f.Carrier != "SF Express" || f.TrackingURL == "" || !strings.Contains(last, "SF Express") {
		s.t.Errorf("the buyer reads %+v, %q", f, last)
	}
	if out := s.ask(buyer, `mutation($id: ID!) { setFulfilment(input: {orderId: $id, state: DELIVERED}) { userErrors { code } } }`, map[string]any{"id": orderID}); out.code() != "FORBIDDEN" {
		s.t.Errorf("a buyer says it is delivered: %s", out.code())
	}
}

// exported returns the first row of the export of a sale's orders, by column.
func (s *site) exported(token, saleID string) map[string]string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+operator.ExportPath+"?sale="+saleID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || len(rows) < 2 {
		s.t.Fatalf("%d rows, %v", len(rows), err)
	}
	row := map[string]string{}
	for i, column := range rows[0] {
		row[column] = rows[1][i]
	}
	return row
}
