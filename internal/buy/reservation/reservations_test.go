package reservation_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// narrow returns a client with two connections that does not wait for a free one.
func narrow(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.PoolSize, opts.PoolTimeout, opts.ReadTimeout = 2, time.Millisecond, time.Minute
	client := redis.NewClient(opts)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestThousandsWhoLookAtOnceAreAnsweredEachTheirOwn(t *testing.T) {
	t.Parallel()
	_, prefix := testenv.Redis(t)
	f := newFixture(t, patient(t, testenv.RedisURL(t)), prefix)
	f.open(100)
	withWaitlist := id.New[id.Item]() // an item with a waitlist and no other field
	if err := f.client.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), withWaitlist), "line", 1).Err(); err != nil {
		t.Fatal(err)
	}
	tasks := map[id.User]id.Task{}
	users := make([]id.User, 3000)
	for i := range users {
		users[i] = id.New[id.User]()
		if i%100 == 0 {
			a := f.attempt(users[i])
			if o := f.reserve(a); o.Code != reservation.Accepted {
				t.Fatalf("code %d", o.Code)
			}
			tasks[users[i]] = a.Task
		}
	}
	h := reservation.NewGate(reservation.GateConfig{Client: narrow(t, testenv.RedisURL(t)), Keys: f.keys, Timeout: testenv.Wait})
	other := id.New[id.Item]() // an item of another sale without reservations
	var wg sync.WaitGroup
	for i, user := range users {
		wg.Go(func() {
			soldOut := []id.Item{f.item}
			if i%2 == 0 {
				soldOut = append(soldOut, withWaitlist)
			}
			held, inLine, err := h.ReservationsAndWaitlist(t.Context(), f.sale, []id.Item{f.item, withWaitlist}, user, soldOut)
			if err != nil || held[f.item].Task != tasks[user] || len(held) > 1 || inLine != (i%2 == 0) {
				t.Errorf("user %d holds %v, in line %v, %v; want %v", i, held, inLine, err, tasks[user])
			}
		})
		if i%7 == 0 {
			wg.Go(func() {
				if held, err := h.Reservations(t.Context(), id.New[id.Sale](), []id.Item{other}, user); err != nil || len(held) > 0 {
					t.Errorf("of another sale: %v %v", held, err)
				}
			})
		}
	}
	wg.Wait()
}
