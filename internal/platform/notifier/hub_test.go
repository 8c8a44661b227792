package notifier

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func subscribe(t testing.TB, h *Hub, key string) *Subscription {
	t.Helper()
	s, err := h.Subscribe(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestPublishReachesTheFollowersOfTheKeyAlone(t *testing.T) {
	t.Parallel()
	h := NewHub(Options{})
	a, b, other := subscribe(t, h, "a"), subscribe(t, h, "a"), subscribe(t, h, "b")
	h.Publish(Event{Key: "a", Revision: 1, Value: "x"})
	h.Publish(Event{Key: "other", Revision: 1})
	for _, s := range []*Subscription{a, b} {
		<-s.Ready()
		if e, ok := s.Take(); !ok || e.Value != "x" {
			t.Errorf("%+v %v", e, ok)
		}
	}
	if e, ok := other.Take(); ok {
		t.Errorf("%+v", e)
	}
	if !h.Followed("a") || h.Followed("other") || h.Followers() != 3 {
		t.Errorf("%d followers", h.Followers())
	}
}

func TestASlotHoldsTheHighestRevisionAndPublishNeverWaits(t *testing.T) {
	t.Parallel()
	h := NewHub(Options{})
	s := subscribe(t, h, "a")
	for i := range 10_000 {
		h.Publish(Event{Key: "a", Revision: int64(i)})
	}
	h.Publish(Event{Key: "a", Revision: 20_000, Terminal: true, Value: "end"})
	h.Publish(Event{Key: "a", Revision: 20_000, Terminal: true}) // without a value
	h.Publish(Event{Key: "a", Revision: 5, Value: "late"})
	<-s.Ready()
	if e, ok := s.Take(); !ok || e.Revision != 20_000 || e.Value != "end" || !e.Terminal {
		t.Errorf("%+v", e)
	}
	if e, ok := s.Take(); ok {
		t.Errorf("twice: %+v", e)
	}
}

func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	h := NewHub(Options{PerKey: 2, Total: 3})
	a := subscribe(t, h, "a")
	subscribe(t, h, "a")
	if _, err := h.Subscribe("a"); !errors.Is(err, ErrFull) {
		t.Errorf("a third of one key: %v", err)
	}
	subscribe(t, h, "b")
	if _, err := h.Subscribe("c"); !errors.Is(err, ErrFull) {
		t.Errorf("a fourth: %v", err)
	}
	a.Close()
	a.Close()
	if h.Followers() != 2 {
		t.Errorf("%d followers", h.Followers())
	}
	subscribe(t, h, "a")
}

func TestClosingOneFollowerLeavesTheOthers(t *testing.T) {
	t.Parallel()
	h := NewHub(Options{})
	rnd := rand.New(rand.NewPCG(1, 2))
	var open []*Subscription
	for i := range 2000 {
		if len(open) == 0 || rnd.IntN(5) < 3 {
			open = append(open, subscribe(t, h, "a"))
		} else {
			n := rnd.IntN(len(open))
			open[n].Close()
			open = append(open[:n], open[n+1:]...)
		}
		h.Publish(Event{Key: "a", Revision: int64(i + 1)})
		for _, s := range open {
			if e, ok := s.Take(); !ok || e.Revision != int64(i+1) {
				t.Fatalf("%d open: %+v", len(open), e)
			}
		}
	}
	for _, s := range open {
		s.Close()
	}
	if h.Followers() != 0 || h.Followed("a") {
		t.Errorf("%d followers", h.Followers())
	}
}

func TestAHubIsSafeForMany(t *testing.T) {
	t.Parallel()
	h := NewHub(Options{})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 500 {
				key := fmt.Sprint("k", (w+i)%10)
				s, err := h.Subscribe(key)
				if err != nil {
					t.Error(err)
					return
				}
				h.Publish(Event{Key: key, Revision: int64(i + 1)})
				<-s.Ready()
				s.Take()
				s.Close()
			}
		})
	}
	all.Wait()
	if h.Followers() != 0 {
		t.Errorf("%d followers", h.Followers())
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, followers := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint(followers), func(b *testing.B) {
			h := NewHub(Options{})
			for range followers {
				subscribe(b, h, "a")
			}
			var n int64
			for b.Loop() {
				n++
				h.Publish(Event{Key: "a", Revision: n})
			}
		})
	}
}
