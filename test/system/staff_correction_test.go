package system_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

// correct asks for another recipient of an order and returns why it was refused.
func (s *site) correct(token, orderID, street, reason string) string {
	s.t.Helper()
	in := maps.Clone(home)
	in["orderId"], in["street"] = orderID, street
	if reason != "" {
		in["reason"] = reason
	}
	return s.mutate(token, "correctRecipient", "order { revision }", in).why()
}

// sentTo returns the streets in the events about corrected recipients.
func (s *site) sentTo(erp string) (streets []string) {
	s.t.Helper()
	var data struct {
		Events struct {
			Edges []struct{ Node struct{ Payload string } }
		}
	}
	s.ask(erp, `{ events(first: 50, kinds: [ORDER_RECIPIENT_CHANGED]) { edges { node { payload } } } }`, nil).into(s.t, &data)
	for _, e := range data.Events.Edges {
		var sent struct {
			Data struct{ Recipient struct{ Street string } }
		}
		if err := json.Unmarshal([]byte(e.Node.Payload), &sent); err != nil {
			s.t.Fatal(err)
		}
		streets = append(streets, sent.Data.Recipient.Street)
	}
	return streets
}

func TestTheAddressOfAnOrderIsCorrectedUntilItIsOnItsWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.toAddresses(2)
	buyer, other := made.Users[0].AccessToken, made.Users[1].AccessToken
	ann := s.staff("ann@example.com", "OPERATOR")
	_, erp := s.serviceToken(s.staff("carla@example.com", "ADMIN"), "EVENTS_READ") // events are written while a token may read them
	s.saveAddress(buyer, home)
	orderID := s.buysOne(buyer, made)
	state := func(token string) (street string, may bool, revision int, last string) {
		t.Helper()
		var data struct {
			Order struct {
				CanCorrectRecipient bool
				Revision            int
				Recipient           struct{ Street string }
				Timeline            []struct{ Note string }
			}
		}
		s.ask(token, `query($id: ID!) { order(by: { id: $id }) { canCorrectRecipient revision recipient { street } timeline { note } } }`, map[string]any{"id": orderID}).into(t, &data)
		o := data.Order
		return o.Recipient.Street, o.CanCorrectRecipient, o.Revision, o.Timeline[len(o.Timeline)-1].Note
	}
	if why := s.correct(other, orderID, "9 Thief Lane", ""); why != "NOT_FOUND" {
		t.Errorf("another buyer corrects: %q", why)
	}
	if why := s.correct(ann, orderID, "8 Moon Road", ""); why != "INVALID_INPUT" {
		t.Errorf("staff without a reason: %q", why)
	}
	_, _, before, _ := state(buyer)
	for _, street := range []string{"1 Sun Road", "1 Sun Road", "2 Sun Road", "3 Sun Road"} { // the second changes nothing
		if why := s.correct(buyer, orderID, street, ""); why != "" {
			t.Fatalf("%s: %q", street, why)
		}
	}
	if street, may, revision, _ := state(buyer); street != "3 Sun Road" || may || revision != before+3 {
		t.Errorf("after three corrections: %s, may %v, revision %d after %d", street, may, revision, before)
	}
	if why := s.correct(buyer, orderID, "4 Sun Road", ""); why != "CONFLICT" {
		t.Errorf("a fourth correction: %q", why)
	}
	if why := s.correct(ann, orderID, "8 Moon Road", "asked on the phone"); why != "" {
		t.Fatal(why)
	}
	if street, _, _, last := state(ann); street != "8 Moon Road" || !strings.Contains(last, "asked on the phone") {
		t.Errorf("staff: %s, %q", street, last)
	}
	var books struct {
		MyAddresses []struct{ Recipient struct{ Street string } }
	}
	s.ask(buyer, `{ myAddresses { recipient { street } } }`, nil).into(t, &books)
	if len(books.MyAddresses) != 1 || books.MyAddresses[0].Recipient.Street != home["street"] {
		t.Errorf("the address book %+v", books)
	}
	_, page := s.pay(buyer, orderID)
	s.choose(page, "approve")
	testenv.Eventually(t, testenv.Wait, func() bool {
		return s.mutate(ann, "setFulfilment", "order { id }", map[string]any{"orderId": orderID, "state": "PREPARING"}).why() == ""
	}, "the order is paid")
	if why := s.correct(ann, orderID, "9 Moon Road", "again"); why != "" {
		t.Errorf("while it is packed: %q", why)
	}
	if why := s.mutate(ann, "setFulfilment", "order { id }", map[string]any{"orderId": orderID, "state": "SHIPPED"}).why(); why != "" {
		t.Fatal(why)
	}
	var streets []string
	testenv.Eventually(t, testenv.Wait, func() bool { streets = s.sentTo(erp); return len(streets) == 5 }, "each correction is an event")
	if want := []string{"1 Sun Road", "2 Sun Road", "3 Sun Road", "8 Moon Road", "9 Moon Road"}; !slices.Equal(streets, want) {
		t.Errorf("events with %v, want %v", streets, want)
	}
	if _, may, _, _ := state(ann); may {
		t.Error("an order on its way can be corrected")
	}
	if why := s.correct(ann, orderID, "10 Moon Road", "again"); why != "CONFLICT" {
		t.Errorf("on its way: %q", why)
	}
}
