package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/media"
	"seckill/internal/operator"
	"seckill/internal/order"
	"seckill/internal/report"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/salestats"
	"seckill/internal/stream"
)

// office is what operators work with.
type office struct {
	sales    *sale.Store
	versions *sale.Versions
	feed     *salestats.Feed
	counts   *salestats.Recorder
	figures  *salestats.Reader
	reports  report.Source
	desk     *operator.Service
	pictures http.Handler // nil = none can be uploaded
}

// newOffice joins what counts and tells. The desk follows, when there are sales
// and a cashier.
func (a *App) newOffice() *office {
	o := &office{
		sales:    sale.NewStore(a.svc.db.Ent),
		versions: sale.NewVersions(a.svc.redis.Cmd, a.keys.Prefix, a.log),
		feed:     salestats.NewFeed(salestats.FeedConfig{Client: a.svc.redis.Cmd, Keys: a.keys, Log: a.log}),
		counts: salestats.NewRecorder(salestats.Config{
			Client: a.svc.redis.Script, Keys: a.keys, Remaining: a.remaining, Clock: a.clock, Log: a.log,
		}),
		figures: salestats.NewReader(salestats.ReaderConfig{
			DB: a.svc.db, Client: a.svc.redis.Cmd, Keys: a.keys, Queue: a.queueOf, Clock: a.clock,
		}),
	}
	o.reports = report.Source{DB: a.svc.db, Sales: o.sales, Stats: o.figures, Clock: a.clock}
	return o
}

// wireDesk joins what operators do.
func (a *App) wireDesk() error {
	a.office.desk = operator.New(operator.Config{
		DB: a.svc.db, Sales: a.office.sales, Versions: a.office.versions, Forget: a.catalog.Forget,
		Gate: a.gate, Orders: a.orders, Load: a.preloader.LoadBy,
		SetState: a.preloader.Turn, RefreshStock: a.stock.Refresh, Payments: a.cashier.payments, Publish: a.office.feed.Act,
		TwoPersonUnits: a.cfg.TwoPersonUnits, Audit: a.auditStaff, Clock: a.clock, Log: a.log,
	})
	if a.cfg.Media.Reveal() == "" {
		return nil
	}
	store, closeStore, err := media.Open(a.cfg.Media.Reveal())
	if err != nil {
		return fmt.Errorf("SECKILL_MEDIA: %w: choose a folder that this process may write, or s3://key:secret@host/bucket", err)
	}
	a.svc.close = append(a.svc.close, closeStore)
	a.office.pictures = media.New(store).Handler(func(r *http.Request) error {
		_, err := a.operatorOf(r)
		return err
	}, a.log)
	return nil
}

// start runs the office's parts in a group.
func (o *office) start(g *group) {
	g.start("figures", o.counts.Run)
	g.start("live log", o.feed.Run)
}

// operatorOf tells which operator sends a request that is not GraphQL.
func (a *App) operatorOf(r *http.Request) (sale.Actor, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return sale.Actor{}, fault.New(fault.Unauthenticated, "Please sign in first.")
	}
	p, err := a.tokens.Verify(r.Context(), token)
	if err != nil {
		return sale.Actor{}, err
	}
	if !p.Role.AtLeast(auth.Operator) {
		return sale.Actor{}, fault.New(fault.Forbidden, "Your role may not do this.")
	}
	return sale.Actor{ID: p.UserID, Role: p.Role}, nil
}

// remaining returns the units left in every sale whose gates this process sees.
func (a *App) remaining() map[uuid.UUID]int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	loaded, err := a.loadedSales(ctx)
	if err != nil {
		return nil
	}
	left := map[uuid.UUID]int{}
	for _, v := range loaded {
		units, seen := 0, len(v.Items) > 0
		for _, item := range v.Items {
			view, ok := a.stock.View(item.ID)
			units, seen = units+view.Stock, seen && ok
		}
		if seen {
			left[v.ID] = units
		}
	}
	return left
}

// queueOf tells how many messages of a shard wait for a worker.
func (a *App) queueOf(ctx context.Context, shard int) (depth int, age time.Duration, err error) {
	inspector := stream.Inspector{Client: a.svc.redis.Cmd, Dead: a.deadLetters, Clock: a.clock}
	s, err := inspector.Stats(ctx, a.keys.Orders(shard), ordersGroup)
	return int(s.Unread + s.Pending), s.OldestAge, err
}

// watchOrders tells the live log how orders moved.
func (o *office) watchOrders(next order.PublishOrders) order.PublishOrders {
	return func(ctx context.Context, orders []*order.Order) error {
		o.feed.Moved(orders...)
		return next(ctx, orders)
	}
}

// watchTasks tells the live log how tasks ended.
func (o *office) watchTasks(next order.PublishTasks) order.PublishTasks {
	return func(ctx context.Context, tasks []order.Task) error {
		o.feed.Ended(tasks)
		return next(ctx, tasks)
	}
}

// gateClock is the clock that all processes share, whatever their hosts say: that of
// Redis. It opens and ends the gates, and decides when orders and offers lapse.
type gateClock struct{ stock *reservation.StockCache }

// Now returns the time by the clock of Redis, as this process last saw it.
func (g gateClock) Now() time.Time { return g.stock.ServerTime() }
