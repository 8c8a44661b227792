package waitlist_test

import (
	"strings"
	"testing"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestAccountsOfOnePersonHaveOnePlaceOnTheWaitlist(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	hasher := person.NewHasher([][]byte{[]byte(strings.Repeat("k", 32))})
	keys := person.Keys{Contact: hasher.Contact(h.sale, "a@example.com", true)}
	join := func(user id.User, keys person.Keys) (*waitlist.Entry, error) {
		return h.line.Join(t.Context(), waitlist.JoinInput{Sale: h.sale, Item: h.item, User: user, Persons: keys, Quantity: 1, Waived: true})
	}
	first, err := join(id.New[id.User](), keys)
	h.must(err)
	_, err = join(id.New[id.User](), keys)
	if limit, ok := testenv.Refusal(t, err).(reservation.LimitReached); !ok || limit.By != person.Contact {
		t.Errorf("a second place of a contact: %v", err)
	}
	h.cancel(o)
	h.step()
	h.want(first, waitlist.Offered)
	held, err := h.gate.Reservations(t.Context(), h.sale, []id.Item{h.item}, first.User)
	h.must(err)
	if held[h.item].Persons != keys {
		t.Errorf("the offer is reserved for %+v", held[h.item])
	}
}
