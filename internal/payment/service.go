package payment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/postgres"
)

const (
	// providerTimeout bounds one call to a provider.
	providerTimeout = 5 * time.Second
	// maxRaces bounds how often a use case starts again because another process
	// moved the order in between.
	maxRaces = 5
)

// Gate is the gate in Redis, as late payments need it.
type Gate interface {
	// Reacquire takes units for an order that had expired, under a new name, and
	// returns the epoch of the gate that has them. Repeating it with the same name
	// changes nothing.
	Reacquire(ctx context.Context, r order.Reservation) (outcome ReacquireOutcome, epoch int64, err error)
	// Return returns units under a name. Repeating it changes nothing. False means that
	// the gate is being rebuilt: it will hold what the record says.
	Return(ctx context.Context, r order.Reservation) (bool, error)
}

// ReacquireOutcome is the gate's answer to Reacquire.
type ReacquireOutcome string

// Outcomes of Reacquire.
const (
	ReacquireDone   ReacquireOutcome = "DONE"
	ReacquireNoGate ReacquireOutcome = "NO_GATE" // the item is not in Redis
	ReacquireNone   ReacquireOutcome = "NONE"    // too few units
	ReacquireOther  ReacquireOutcome = "OTHER"   // the user has units for another order
	ReacquireNotYet ReacquireOutcome = "NOT_YET" // what the order reserved before is not returned yet
)

// Config is what a Service is made of.
type Config struct {
	DB        *postgres.DB
	Orders    *order.Store
	Publisher *order.Publisher
	Gate      Gate
	Providers []Provider
	// PublishEvent sends the message that an event was stored. It may fail: a loop
	// finds the event.
	PublishEvent func(ctx context.Context, event uuid.UUID) error
	Patience     time.Duration // bound on one expiry step's wait for providers; 0 = 6 s
	Clock        clock.Clock   // nil = clock.System
	// Registerer gets the metrics; nil = they are shown nowhere.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Service is the use cases of payment. It is safe for concurrent use, on any
// number of processes.
type Service struct {
	db           *postgres.DB
	orders       *order.Store
	publisher    *order.Publisher
	gate         Gate
	providers    map[string]Provider
	publishEvent func(ctx context.Context, event uuid.UUID) error
	patience     time.Duration
	clock        clock.Clock
	metrics      *metrics
	log          *slog.Logger
}

// New returns a service.
func New(cfg Config) *Service {
	s := &Service{
		db: cfg.DB, orders: cfg.Orders, publisher: cfg.Publisher, gate: cfg.Gate, providers: map[string]Provider{},
		publishEvent: cfg.PublishEvent, patience: cmp.Or(cfg.Patience, defaultPatience), clock: cfg.Clock, metrics: newMetrics(cfg.Registerer), log: cfg.Log,
	}
	for _, p := range cfg.Providers {
		s.providers[p.Name()] = p
	}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	return s
}

func (s *Service) provider(name string) (Provider, error) {
	p, ok := s.providers[name]
	if !ok {
		return nil, fmt.Errorf("no payment provider %q", name)
	}
	return p, nil
}

// ask calls a provider within a bound of its own. The call ends with the
// caller's context only if that has no outcome to lose.
func (s *Service) ask(ctx context.Context, step string, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	if err := call(ctx); err != nil {
		s.metrics.fault(step)
		return fmt.Errorf("%s at the provider: %w", step, err)
	}
	return nil
}

// now is the instant of an operation, with the database's precision.
func (s *Service) now() time.Time { return s.clock.Now().UTC().Truncate(time.Microsecond) }

func newID() uuid.UUID { return id.New() }
