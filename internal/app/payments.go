package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"seckill/internal/auth"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/payment/sandbox"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
	"seckill/internal/storefront"
	"seckill/internal/stream"
)

// paymentsGroup is the consumer group of the stream of payment events.
const paymentsGroup = "payments"

// cashier is what pays, lapses and refunds orders.
type cashier struct {
	payments *payment.Service
	router   *stream.Router
	pages    http.Handler // of the sandbox bank; nil when it is off
	loops    []periodic.Loop
}

// wireCashier joins the life of an order after it was written: payment, lapse,
// return of units, refund.
func (a *App) wireCashier(keys auth.Keys) error {
	publisher := a.newPublisher()
	gate := payment.NewRedisGate(a.gate, func(c order.Reservation, epoch, revision int64, remaining int) {
		a.stock.Update(c.Item, epoch, revision, remaining)
	})
	topic := payment.Topic(a.keys.Prefix)
	c := &cashier{}
	cfg := payment.Config{
		DB: a.svc.db, Orders: a.orders, Publisher: publisher, Gate: gate, Clock: a.common, Registerer: a.registry, Log: a.log,
		PublishEvent: func(ctx context.Context, event uuid.UUID) error {
			msg, err := payment.Message(event)
			if err != nil {
				return err
			}
			msg.SetContext(ctx)
			return a.publisher.Publish(topic, msg)
		},
	}
	if a.cfg.SandboxOn() {
		live := keys.Derive("sandbox call-backs") // of the signing key and the one before
		signer, err := sandbox.NewSigner(live[:min(len(live), 2)]...)
		if err != nil {
			return fmt.Errorf("sandbox bank: %w", err)
		}
		base := a.baseURL()
		bank := sandbox.NewBank(a.svc.db, a.common)
		courier := sandbox.NewCourier(bank, base+"/webhooks/payments/"+sandbox.Name, signer, a.log)
		a.svc.close = append(a.svc.close, func() error { courier.Close(); return nil })
		cfg.Providers = append(cfg.Providers, sandbox.NewProvider(bank, base+"/sandbox", signer, a.common))
		c.pages = sandbox.NewPages(bank, base+"/sandbox", a.log).Handler()
		c.loops = append(c.loops, courier.Loop())
	}
	c.payments = payment.New(cfg)
	c.loops = append(c.loops, order.OrderReturns(a.svc.db, gate.ReturnAll, a.log))
	c.loops = append(c.loops, c.payments.Loops()...)
	var err error
	c.router, err = stream.NewRouter(stream.RouterConfig{
		NewSubscriber: func() (*stream.Subscriber, error) {
			return stream.NewSubscriber(stream.SubscriberConfig{
				Client: a.svc.redis.NewBlocking(), Group: paymentsGroup, Consumer: consumerName(a.cfg.AdminAddr),
				ClaimIdle: a.cfg.ClaimIdle, Log: a.log, Metrics: a.streamMetrics,
			})
		},
		Handlers:    []stream.Handler{{Name: "payments", Topics: []string{topic}, Handle: c.payments.Handle}},
		DeadLetters: a.deadLetters, IsTransient: postgres.Retryable, Log: a.log, Metrics: a.streamMetrics,
	})
	if err != nil {
		return fmt.Errorf("payment router: %w", err)
	}
	trimmer := stream.NewTrimmer(a.svc.redis.Cmd, []string{topic}, a.streamMetrics)
	c.loops = append(c.loops, periodic.Loop{Name: "trim payments", Every: trimEvery, Step: trimmer.Step, Log: a.log})
	a.cashier = c
	return nil
}

// start runs the cashier's parts in a group.
func (c *cashier) start(g *group) {
	g.start("payment router", c.router.Run)
	for _, loop := range c.loops {
		g.start(loop.Name, loop.Run)
	}
}

// announceOrders tells every process how orders stand.
func (a *App) announceOrders(ctx context.Context, orders []*order.Order) error {
	entries := make([]notifier.StatusEntry, 0, 2*len(orders))
	for _, o := range orders {
		value, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("announce order %s: %w", o.ID, err)
		}
		e := notifier.StatusEntry{Key: storefront.OrderKey(o.ID), Revision: o.Version, Terminal: o.Status.Ended(), Value: value}
		entries = append(entries, e, buyerEntry(o.User))
	}
	return a.bus.Publish(ctx, entries)
}

// buyerEntry tells whoever follows all orders of a buyer to look again.
func buyerEntry(user uuid.UUID) notifier.StatusEntry {
	return notifier.StatusEntry{Key: storefront.BuyerKey(user), Revision: storefront.BuyerRevision}
}

// baseURL is where browsers and providers reach this installation, without a
// slash at the end.
func (a *App) baseURL() string {
	if a.cfg.PublicURL != "" {
		return strings.TrimSuffix(a.cfg.PublicURL, "/")
	}
	if a.listener != nil {
		return "http://" + browsable(a.listener.Addr())
	}
	host, port, err := net.SplitHostPort(a.cfg.HTTPAddr)
	if err != nil || host == "" {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
