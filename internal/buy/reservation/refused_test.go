package reservation_test

import (
	"bytes"
	"log/slog"
	"testing"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// TestARedisThatRefusesConnectionsIsNotReadAsEmpty: a changed password or a script that
// blocks Redis must not close gates, move the shared clock, or hide reservations.
func TestARedisThatRefusesConnectionsIsNotReadAsEmpty(t *testing.T) {
	t.Parallel()
	for _, lockout := range testenv.Lockouts() {
		t.Run(lockout.Name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisServer(t)
			conn, err := redisconn.Open(t.Context(), testenv.LockableURL(t, server))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			f := newFixture(t, conn.Script, "")
			f.open(2)
			a := f.attempt(id.New[id.User]())
			f.reserve(a)
			var log bytes.Buffer
			shared := clock.NewShared(clock.System{}, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
			cache := reservation.NewStockCache(reservation.StockCacheConfig{
				Client: f.client, Keys: f.keys, Clock: clock.System{}, Shared: shared, Log: slog.New(slog.DiscardHandler),
				Items: items{{Sale: f.sale, Item: f.item}},
			})
			refresh(t, cache)
			before, _ := cache.View(f.item)
			defer lockout.Do(t, server)()
			if err := cache.Refresh(t.Context()); err == nil || !fault.IsTransient(err) {
				t.Errorf("refreshing the views: error %v, want a transient one", err)
			}
			if after, ok := cache.View(f.item); !ok || after != before {
				t.Errorf("the view is %+v (%v), want %+v", after, ok, before)
			}
			if log.Len() > 0 {
				t.Errorf("the clock is compared with a reply that did not come: %s", log.String())
			}
			list, err := f.gate.Reservations(t.Context(), f.sale, []id.Item{f.item}, a.User)
			if err == nil || !fault.IsTransient(err) {
				t.Errorf("reading reservations: %v, error %v, want a transient one", list, err)
			}
		})
	}
}
