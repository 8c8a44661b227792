package waitlist_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// When an item has sold out, all buyers join at once, some of them twice, through
// different processes.
func TestACrowdThatJoinsAtOnceHasOnePlaceEachInOneLine(t *testing.T) {
	t.Parallel()
	const people = 600
	h := newHall(t, 1)
	buyer := h.buy().User
	services := []*waitlist.Service{h.line, waitlist.New(waitlist.Config{
		DB: h.db, Gate: h.gate, Timeout: testenv.Wait, Clock: h.clock, Log: quiet,
	})}
	users := make([]id.User, people)
	for i := range users {
		users[i] = id.New[id.User]()
	}
	users[people/2] = buyer
	var wg sync.WaitGroup
	var mu sync.Mutex
	places := map[id.User][]id.Waitlist{} // by user
	for press := range 3 * people {
		user := users[press%people]
		wg.Go(func() {
			e, err := services[press%2].Join(t.Context(), waitlist.JoinInput{Sale: h.sale, Item: h.item, User: user, Quantity: 1, Waived: true})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case user == buyer:
				refused(t, err, fault.AlreadyOrdered)
			case err != nil || e == nil || e.User != user:
				t.Errorf("%s is answered %+v, %v", user, e, err)
			default:
				places[user] = append(places[user], e.ID)
			}
		})
	}
	wg.Wait()
	line := make([]id.Waitlist, 0, people)
	for user, all := range places {
		if len(all) != 3 || len(slices.Compact(all)) != 1 {
			t.Errorf("%s has places %v, want one, three times", user, all)
		}
		line = append(line, all[0])
	}
	if len(line) != people-1 {
		t.Fatalf("%d have a place, want %d", len(line), people-1)
	}
	slices.SortFunc(line, func(a, b id.Waitlist) int { return bytes.Compare(a[:], b[:]) })
	for ahead, place := range line {
		wg.Go(func() {
			n, err := services[ahead%2].Ahead(t.Context(), &waitlist.Entry{ID: place, Item: h.item})
			if err != nil || n != ahead {
				t.Errorf("%d are ahead of place %d, %v", n, ahead, err)
			}
		})
	}
	for _, user := range users {
		wg.Go(func() {
			e, err := services[0].In(t.Context(), user, h.sale)
			if err != nil || (e == nil) != (user == buyer) || (e != nil && e.ID != places[user][0]) {
				t.Errorf("the place of %s is %+v, %v", user, e, err)
			}
		})
	}
	wg.Wait()
}

func TestTheNewestPlaceIsTheOnesWhoJoinedAgainAndAgain(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	h.buy()
	user := id.New[id.User]()
	var last *waitlist.Entry
	for range 4 {
		last, _ = h.join(user)
		left, err := h.line.Leave(t.Context(), last.ID, user)
		if err != nil || left.Status != waitlist.Left {
			t.Fatalf("leave: %+v %v", left, err)
		}
	}
	if e, err := h.line.In(t.Context(), user, h.sale); err != nil || e == nil || e.ID != last.ID {
		t.Errorf("the place is %+v, %v; want the last", e, err)
	}
	again, _ := h.join(user)
	if e, err := h.line.In(t.Context(), user, h.sale); err != nil || e == nil || e.ID != again.ID || e.Status != waitlist.Waiting {
		t.Errorf("the place is %+v, %v; want the open one", e, err)
	}
	if e, err := h.line.In(t.Context(), user, id.New[id.Sale]()); err != nil || e != nil {
		t.Errorf("a place in another sale: %+v, %v", e, err)
	}
}
