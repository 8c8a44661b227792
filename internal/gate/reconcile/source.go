package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// overdueAfter is the time after which unfinished work of other loops is overdue:
// several rounds of the slowest loop.
const overdueAfter = 2 * time.Minute

// Gates is what the reconciler needs of package preload.
type Gates interface {
	// Differs reports whether the stock of an item differs from Postgres.
	Differs(ctx context.Context, saleID id.Sale, itemID id.Item) (bool, error)
	// Rebuild builds the gates of a sale if they have the given epoch, and reports
	// whether it did.
	Rebuild(ctx context.Context, saleID id.Sale, epoch int64) (bool, error)
}

// Config holds the dependencies of New.
type Config struct {
	Catalog     *sale.Catalog
	Gates       Gates
	Keys        reservation.Keys
	Auditor     audit.Auditor
	Streams     stream.Appender
	Orders      *order.Store
	Payments    *payment.Service
	DeadLetters *deadletter.Store
	Clock       clock.Clock           // of Redis
	Registerer  prometheus.Registerer // nil = metrics are not exported
	Log         *slog.Logger
}

// New returns a reconciler of Redis and Postgres.
func New(cfg Config) *Reconciler { return NewOf(installation{cfg}, cfg.Registerer, cfg.Log) }

// installation is the Source of a running installation.
type installation struct{ cfg Config }

// Loaded lists the sales whose gates should be in Redis.
func (s installation) Loaded(ctx context.Context) ([]*sale.Sale, error) {
	return s.cfg.Catalog.Loaded(ctx)
}

// Differs compares the stock of a gate with Postgres.
func (s installation) Differs(ctx context.Context, saleID id.Sale, itemID id.Item) (bool, error) {
	return s.cfg.Gates.Differs(ctx, saleID, itemID)
}

// Audit compares a whole sale.
func (s installation) Audit(ctx context.Context, saleID id.Sale) (*audit.Report, error) {
	return s.cfg.Auditor.Sale(ctx, saleID)
}

// Resend publishes the message of a lost reservation again, under its task id.
func (s installation) Resend(ctx context.Context, v *sale.Sale, lost audit.Lost) error {
	for _, item := range v.Items {
		if item.ID != lost.Item {
			continue
		}
		msg, err := order.Request{
			V: 1, Task: lost.Task, User: lost.User, Sale: v.ID, Item: item.ID, Quantity: lost.Quantity, Persons: lost.Persons,
			UnitPriceMinor: item.Price.Minor, Currency: item.Price.Currency,
			PaymentWindowSeconds: int(v.PaymentWindow / time.Second),
			Epoch:                v.Epoch, SubmittedAtMs: s.cfg.Clock.Now().UnixMilli(),
		}.Message()
		if err != nil {
			return err
		}
		return s.cfg.Streams.Append(ctx, s.cfg.Keys.Orders(id.ShardOf(v.ID)), msg)
	}
	return fmt.Errorf("item %s is not in the catalogue", lost.Item)
}

// Rebuild builds the gates of a sale under the next epoch.
func (s installation) Rebuild(ctx context.Context, saleID id.Sale, epoch int64) (bool, error) {
	return s.cfg.Gates.Rebuild(ctx, saleID, epoch)
}

// Unfinished counts the overdue work of other loops.
func (s installation) Unfinished(ctx context.Context) (map[string]int, error) {
	before := s.cfg.Clock.Now().Add(-overdueAfter)
	counts, err := s.cfg.Orders.Unfinished(ctx, before)
	if err != nil {
		return nil, err
	}
	money, err := s.cfg.Payments.Unfinished(ctx, before)
	if err != nil {
		return nil, err
	}
	maps.Copy(counts, money)
	counts["dead_letters"], err = s.cfg.DeadLetters.CountBefore(ctx, before)
	return counts, err
}
