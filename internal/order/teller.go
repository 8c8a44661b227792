package order

import (
	"context"
	"log/slog"
	"time"
)

// AnnounceOrders tells the world how orders stand, after the commit that made it
// so. It may lose what it was given.
type AnnounceOrders func(ctx context.Context, orders []*Order) error

// Teller passes on how orders stand after they moved: to their copies in Redis
// and to whoever follows them. What goes wrong there is logged and counted; the
// orders stand, and look-ups fall back on Postgres.
type Teller struct {
	cache    *Cache         // nil = no copies
	announce AnnounceOrders // nil = tell nobody
	meter    Meter
	log      *slog.Logger
}

// NewTeller returns a teller; cache, announce and meter may be nil.
func NewTeller(cache *Cache, announce AnnounceOrders, meter Meter, log *slog.Logger) *Teller {
	if meter == nil {
		meter = noMeter{}
	}
	return &Teller{cache: cache, announce: announce, meter: meter, log: log}
}

// Tell passes on how orders stand. It is called after the commit.
func (t *Teller) Tell(ctx context.Context, orders ...*Order) {
	if len(orders) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	if t.cache != nil {
		if err := t.cache.Put(ctx, nil, orders); err != nil {
			t.fault(ctx, "record", err)
		}
	}
	if t.announce != nil {
		if err := t.announce(ctx, orders); err != nil {
			t.fault(ctx, "announce", err)
		}
	}
}

// tellTimeout bounds Tell: a mutation answers after it.
const tellTimeout = time.Second

func (t *Teller) fault(ctx context.Context, step string, err error) {
	t.meter.Fault(step)
	t.log.WarnContext(ctx, "after an order moved", slog.String("step", step), slog.Any("error", err))
}
