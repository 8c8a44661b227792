package payment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/order"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/origin"
	"seckill/internal/platform/postgres"
)

const (
	// ProviderTimeout bounds one call to a provider.
	ProviderTimeout = 5 * time.Second
	// maxRaces bounds the retries of a use case after another process moved the order.
	maxRaces = 5
)

// Gate is the part of the gate in Redis that late payments need.
type Gate interface {
	// Reacquire reserves units for an expired order under a new name, and returns the
	// epoch of the gate. Repeating it with the same name changes nothing.
	Reacquire(ctx context.Context, r order.Reservation) (outcome ReacquireOutcome, epoch int64, err error)
	// Return returns the units reserved under a name. Repeating it changes nothing.
	// False means that the gate is being rebuilt and will take its state from Postgres.
	Return(ctx context.Context, r order.Reservation) (bool, error)
}

// ReacquireOutcome is the outcome of Reacquire.
type ReacquireOutcome string

// Outcomes of Reacquire.
const (
	ReacquireDone   ReacquireOutcome = "DONE"
	ReacquireNoGate ReacquireOutcome = "NO_GATE" // the item is not in Redis
	ReacquireNone   ReacquireOutcome = "NONE"    // too few units
	ReacquireOther  ReacquireOutcome = "OTHER"   // the user's other orders leave no room for it
	ReacquireNotYet ReacquireOutcome = "NOT_YET" // the order's previous reservation is not returned yet
)

// Config holds the dependencies of a Service.
type Config struct {
	DB          *postgres.DB
	Orders      *order.Store
	AfterCommit *order.AfterCommit
	Facts       order.Facts     // of orders; nil = pass nothing on
	Outbox      *webhook.Outbox // nil = events for other systems are not written
	Receipts    Receipts        // nil = buyers get none
	Gate        Gate
	Providers   []Provider    // in the order in which buyers see them
	Events      Events        // nil = a loop finds stored events
	Security    Security      // nil = neither is recorded
	Inbox       Inbox         // nil = what waits for an operator is not reported
	Timeout     time.Duration // of one call to a provider; 0 = ProviderTimeout
	Patience    time.Duration // bound on the wait for providers in one expiry step; 0 = 6 s
	// OrderPage returns the address of the buyer's page of an order, to which providers
	// send the buyer back; nil = its path.
	OrderPage func(order id.Order, number string) string
	// EntryPage returns the address of the page of a sale, to which providers send those back who
	// enter its draw; nil = its path.
	EntryPage func(slug string) string
	Draws     *waitlist.Service // whose entries may need a card; nil = none
	Returns   origin.Set        // where PayInput.ReturnURL may lead
	Persons   person.Hasher     // for sales whose limits count means of payment
	// ReturnWithin bounds the random time after which units of cancelled and expired orders
	// return to the gate; 0 = at once.
	ReturnWithin time.Duration
	Clock        clock.Clock // nil = clock.System
	// Shared must agree with the other clocks before an irreversible step; nil = a Shared of Clock alone.
	Shared *clock.Shared
	// Registerer registers the metrics; nil = they are not exported.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Events publishes the message about a stored event; EventStream implements it. It may
// fail: a loop finds the event.
type Events interface {
	Publish(ctx context.Context, event id.Held) error
}

// Security records forged call-backs and settled money; account.SecurityLog implements it.
type Security interface {
	// HeldSettled is called when an operator ends held money that was settled elsewhere.
	HeldSettled(ctx context.Context, by id.User, what string)
	// CallbacksForged is called at most every 10 s, with the number since the last call.
	CallbacksForged(ctx context.Context, provider string, count int)
}

// Inbox learns what waits for an operator; inbox.Reporter implements it.
type Inbox interface {
	// Changed is called after the commit of a change.
	Changed(ctx context.Context)
	// ProviderAway is called with each failed call of a provider that is away: it is not
	// offered until then. A zero time means that it answers again.
	ProviderAway(ctx context.Context, provider string, until time.Time)
}

// Service implements the payment use cases. It is safe for concurrent use by any number
// of processes.
type Service struct {
	cfg       Config
	providers map[string]Provider
	looks     *batch.Batcher[look, []order.Cluster]
	expiry    expiryScan
	metrics   *metrics
	breakers  breakers
	forged    forgeries
	gone      goneWarnings
}

// New returns a service.
func New(cfg Config) *Service {
	cfg.Timeout = cmp.Or(cfg.Timeout, ProviderTimeout)
	cfg.Patience = cmp.Or(cfg.Patience, defaultPatience)
	if cfg.OrderPage == nil {
		cfg.OrderPage = func(order id.Order, _ string) string { return "/orders/" + order.Public() }
	}
	if cfg.EntryPage == nil {
		cfg.EntryPage = func(slug string) string { return "/s/" + slug }
	}
	cfg.Clock = clock.OrSystem(cfg.Clock)
	if cfg.Shared == nil {
		cfg.Shared = clock.NewShared(cfg.Clock, nil, nil, cfg.Log)
	}
	s := &Service{
		cfg: cfg, providers: map[string]Provider{}, expiry: expiryScan{batches: maxExpireBatches},
		metrics: newMetrics(cfg.Registerer), forged: forgeries{security: cfg.Security, clock: cfg.Clock},
	}
	for _, p := range cfg.Providers {
		s.providers[p.Name()] = p
		s.metrics.start(p.Name())
	}
	s.looks = s.newLooks()
	return s
}

// Names returns the names of the providers.
func (s *Service) Names() []string { return slices.Sorted(maps.Keys(s.providers)) }

func (s *Service) provider(name string) (Provider, error) {
	p, ok := s.providers[name]
	if !ok {
		return nil, fmt.Errorf("no payment provider %q", name)
	}
	return p, nil
}

// ask calls a provider with a timeout, and measures the call.
func (s *Service) ask(ctx context.Context, provider, step string, call func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	began := s.cfg.Clock.Now()
	err := call(limited)
	s.metrics.called(provider, step, err, s.cfg.Clock.Now().Sub(began))
	if ctx.Err() == nil { // otherwise it was this process that ended the call
		s.noteCall(ctx, provider, step, err)
	}
	if err != nil {
		return fmt.Errorf("%s at the provider: %w", step, err)
	}
	return nil
}

// reportChange reports to the inbox that what waits for an operator has changed.
func (s *Service) reportChange(ctx context.Context) {
	if s.cfg.Inbox != nil {
		s.cfg.Inbox.Changed(ctx)
	}
}

// now returns the time of an operation, in the precision of the database.
func (s *Service) now() time.Time { return s.cfg.Clock.Now().UTC().Truncate(time.Microsecond) }

// ReturnWithin is the usual Config.ReturnWithin: too long to keep trying for the unit of an
// accomplice within the limits of attempts, too short to matter to a sale.
const ReturnWithin = 5 * time.Second

// returnAfter returns the random time after which units return to the gate.
func (s *Service) returnAfter() time.Duration {
	if s.cfg.ReturnWithin == 0 {
		return 0
	}
	return rand.N(s.cfg.ReturnWithin) //nolint:gosec // a delay, no secret
}
