package order_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

var hasher = person.NewHasher([][]byte{[]byte(strings.Repeat("key", 11))})

// from returns a request of a new user from a network, by its last number, and a device.
func (e *env) from(network, device string) order.Request {
	r := e.request()
	var prefix netip.Prefix
	if network != "" {
		prefix = netip.MustParsePrefix(network)
	}
	r.Origin = hasher.Origin(e.sale, prefix, device)
	return r
}

// The orders of a message keep their origins through the message, its parts and the tables; an
// order without one, or of a release that writes none, has none.
func TestOrdersOfOneNetworkOrDeviceAreAClusterOfTheSale(t *testing.T) {
	onBoth(t, stock{units: 20, limit: 2}, func(t *testing.T, e *env) {
		requests := []order.Request{e.from("198.51.100.0/24", ""), e.from("198.51.100.0/24", "laptop"), e.from("", "laptop"), e.from("198.51.100.0/24", "phone"), e.request()}
		requests[2].Persons.Contact = hasher.Contact(e.sale, "joe@example.com", true)
		requests[3].Persons = person.Keys{Contact: requests[2].Persons.Contact, Address: hasher.Address(e.sale, person.Place{Street: "1 Main"})}
		requests[4].Persons.Address = requests[3].Persons.Address
		for i := range requests { // orders with one code are no cluster
			requests[i].Persons.Code = person.CodeOf(7, 100)
		}
		msg, err := order.NewMessage(requests...)
		e.must(err)
		read, err := order.Decode(msg)
		e.must(err)
		for i, part := range order.Split(msg) {
			one, err := order.Decode(part)
			if err != nil || one[0].Origin != requests[i].Origin || read[i].Origin != requests[i].Origin {
				t.Fatalf("order %d has the origins %+v and %+v, want %+v: %v", i, read[i].Origin, one[0].Origin, requests[i].Origin, err)
			}
		}
		for _, r := range e.writer(nil).Write(t.Context(), read...) {
			e.must(r.Err)
		}
		s := e.store()
		found, err := s.Clusters(t.Context(), order.ClustersInput{Sale: e.sale, Limit: 10})
		e.must(err)
		kinds := map[person.Kind]order.Cluster{}
		for i, c := range found {
			kinds[c.Kind] = c
			if c.First.After(c.Last) || c.First.Before(opening.AddDate(-1, 0, 0)) {
				t.Errorf("%s has orders from %s to %s", c.Kind, c.First, c.Last)
			}
			rest, err := s.Clusters(t.Context(), order.ClustersInput{Sale: e.sale, After: c.Position(), Limit: 10})
			if err != nil || !slices.Equal(rest, found[i+1:]) {
				t.Errorf("after %s: %+v, %v", c.Position(), rest, err)
			}
			page, err := s.List(t.Context(), order.ListInput{Filter: order.Filter{Sale: e.sale, Cluster: c.Label}, Limit: 10})
			if err != nil || len(page.Orders) != c.Orders {
				t.Errorf("%s has %d orders, %d in the list: %v", c.Kind, c.Orders, len(page.Orders), err)
			}
		}
		if len(found) != 4 || found[0].Kind != person.Network {
			t.Fatalf("clusters %+v", found)
		}
		for kind, accounts := range map[person.Kind]int{person.Network: 3, person.Device: 2, person.Contact: 2, person.Address: 2} {
			if c := kinds[kind]; c.Accounts != accounts || c.Orders != accounts || c.Units != accounts || c.Unpaid != accounts || c.Held != 0 {
				t.Errorf("%s: %+v, want %d accounts", kind, c, accounts)
			}
		}
		other, err := s.Clusters(t.Context(), order.ClustersInput{Sale: id.New[id.Sale](), Limit: 10})
		if err != nil || len(other) > 0 {
			t.Errorf("another sale has clusters %+v: %v", other, err)
		}
	})
}
