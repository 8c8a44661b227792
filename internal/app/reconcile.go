package app

import (
	"context"
	"fmt"
	"maps"
	"time"

	"seckill/internal/audit"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/periodic"
	"seckill/internal/reconcile"
	"seckill/internal/sale"
)

// reconcileEvery is the rhythm of looking for drift.
const reconcileEvery = 5 * time.Second

// reconciler keeps Redis and the record telling one story.
func (a *App) reconciler() periodic.Loop {
	auditor := audit.Auditor{DB: a.svc.db, Redis: a.svc.redis, Keys: a.keys}
	r := reconcile.New(reconcile.Config{
		Loaded: a.loadedSales,
		Differ: a.preloader.Differs,
		Audit:  auditor.Sale, Resend: a.resend, Rebuild: a.preloader.Load,
		Unfinished: a.unfinished, Registerer: a.registry, Log: a.log,
	})
	return periodic.Loop{Name: "reconcile", Every: reconcileEvery, Timeout: time.Minute, Step: r.Step, Log: a.log}
}

// patience is how long the loops may take to end what ends by itself, before the
// reconciler tells: several rounds of the slowest of them.
const patience = 2 * time.Minute

// letterPage is how many messages that were set aside are read at a time.
const letterPage = 200

// unfinished counts what other loops should have ended long ago.
func (a *App) unfinished(ctx context.Context) (map[string]int, error) {
	before := a.common.Now().Add(-patience)
	counts, err := a.orders.Unfinished(ctx, before)
	if err != nil {
		return nil, err
	}
	money, err := a.cashier.payments.Unfinished(ctx, before)
	if err != nil {
		return nil, err
	}
	maps.Copy(counts, money)
	counts["dead_letters"], err = a.lettersBefore(ctx, before)
	return counts, err
}

// lettersBefore counts the messages that were set aside before an instant, so that a
// person has had the time to decide.
func (a *App) lettersBefore(ctx context.Context, before time.Time) (n int, err error) {
	for last := ""; ; {
		letters, err := a.deadLetters.List(ctx, last, letterPage)
		if err != nil {
			return n, err
		}
		for _, l := range letters { // oldest first
			if !l.At.Before(before) {
				return n, nil
			}
			n, last = n+1, l.ID
		}
		if len(letters) < letterPage {
			return n, nil
		}
	}
}

// loadedSales lists the sales whose gates should be in Redis.
func (a *App) loadedSales(ctx context.Context) ([]*sale.Sale, error) {
	snap, err := a.catalog.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var loaded []*sale.Sale
	for _, v := range snap.Sales {
		if v.Status.Loaded() {
			loaded = append(loaded, v)
		}
	}
	return loaded, nil
}

// resend puts the message of a lost hold into the stream again.
func (a *App) resend(ctx context.Context, v *sale.Sale, lost audit.Lost) error {
	for _, item := range v.Items {
		if item.ID != lost.Item {
			continue
		}
		msg, err := order.Requested{
			V: 1, Task: lost.Task, User: lost.User, Sale: v.ID, Item: item.ID, Quantity: lost.Quantity,
			UnitPriceMinor: item.Price.Minor, Currency: item.Price.Currency,
			PaymentWindowSeconds: int(v.PaymentWindow / time.Second),
			Epoch:                v.Epoch, SubmittedAtMs: a.common.Now().UnixMilli(),
		}.Message()
		if err != nil {
			return err
		}
		msg.SetContext(ctx)
		return a.publisher.Publish(a.keys.Orders(id.ShardOf(v.ID)), msg)
	}
	return fmt.Errorf("item %s is not in the catalogue", lost.Item)
}
