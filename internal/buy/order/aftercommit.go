package order

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"
)

// PublishTimeout bounds one publication, because a mutation returns after it.
const PublishTimeout = 2 * time.Second

// PublishTasks sends ended tasks to every process. Messages may be lost: subscribers
// read the Store again.
type PublishTasks func(ctx context.Context, tasks []Task) error

// PublishOrders sends changed orders to every process. Messages may be lost.
type PublishOrders func(ctx context.Context, orders []*Order) error

// AfterCommitConfig holds the dependencies of an AfterCommit. Every field but Log may be
// nil.
type AfterCommitConfig struct {
	Cache   *Cache
	Tasks   PublishTasks
	Orders  PublishOrders
	Metrics *Metrics
	Timeout time.Duration // of one publication; 0 = PublishTimeout
	Log     *slog.Logger
}

// AfterCommit updates the copies in Redis and notifies subscribers after a commit. It
// logs and counts its failures and never returns them: the rows are committed, and
// reads fall back to Postgres.
type AfterCommit struct{ cfg AfterCommitConfig }

// NewAfterCommit returns an AfterCommit.
func NewAfterCommit(cfg AfterCommitConfig) *AfterCommit {
	return &AfterCommit{cfg: cfg}
}

// Publish publishes changed orders, also none (nil). Call it after the commit.
func (p *AfterCommit) Publish(ctx context.Context, orders ...*Order) {
	orders = slices.DeleteFunc(orders, func(o *Order) bool { return o == nil })
	if p == nil || len(orders) == 0 {
		return
	}
	p.publish(ctx, nil, orders, func(ctx context.Context) error {
		if p.cfg.Orders == nil {
			return nil
		}
		return p.cfg.Orders(ctx, orders)
	})
}

func (p *AfterCommit) publishEnds(ctx context.Context, tasks []Task, orders []*Order) {
	if p == nil || len(tasks) == 0 {
		return
	}
	p.publish(ctx, tasks, orders, func(ctx context.Context) error {
		if p.cfg.Tasks == nil {
			return nil
		}
		return p.cfg.Tasks(ctx, tasks)
	})
}

func (p *AfterCommit) publish(ctx context.Context, tasks []Task, orders []*Order, send func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(p.cfg.Timeout, PublishTimeout))
	defer cancel()
	if p.cfg.Cache != nil {
		if err := p.cfg.Cache.Put(ctx, tasks, orders); err != nil {
			p.fault(ctx, "record", err)
		}
	}
	if err := send(ctx); err != nil {
		p.fault(ctx, "announce", err)
	}
}

func (p *AfterCommit) fault(ctx context.Context, step string, err error) {
	p.cfg.Metrics.fault(step)
	p.cfg.Log.WarnContext(ctx, "publish after commit", slog.String("step", step), slog.Any("error", err))
}
