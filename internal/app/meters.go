package app

import (
	"errors"
	"time"

	"seckill/internal/order"
	"seckill/internal/reservation"
	"seckill/internal/stream"
	"seckill/internal/telemetry"
)

// gateMeter puts what the reserver does into figures.
type gateMeter struct{ m *telemetry.ReservationMetrics }

var outcomeNames = map[reservation.Code]string{
	reservation.Accepted: "accepted", reservation.Replayed: "replayed",
	reservation.IdempotencyMismatch: "idempotency_mismatch", reservation.NotLoaded: "not_loaded",
	reservation.Paused: "paused", reservation.NotStarted: "not_started", reservation.Ended: "ended",
	reservation.PathInvalid: "path_invalid", reservation.AlreadyHolding: "already_holding",
	reservation.OverLimit: "over_limit", reservation.SoldOut: "sold_out", reservation.TooFewLeft: "too_few_left",
	reservation.TooManyTries: "too_many_tries",
}

// Batch counts one script call.
func (g gateMeter) Batch(size int, took time.Duration, err error) {
	g.m.BatchSize.Observe(float64(size))
	g.m.Script.Observe(took.Seconds())
	if errors.Is(err, reservation.ErrUnknown) {
		g.m.Ambiguous.Inc()
	}
}

// Outcome counts one attempt.
func (g gateMeter) Outcome(c reservation.Code) { g.m.Attempts.With(outcomeNames[c]).Inc() }

// orderMeter puts what the writer does into figures.
type orderMeter struct{ m *telemetry.OrderMetrics }

// Batch counts one transaction.
func (o orderMeter) Batch(size int, took time.Duration, err error) {
	if err != nil {
		o.m.Faults.With("transaction").Inc()
		return
	}
	o.m.BatchSize.Observe(float64(size))
	o.m.Write.Observe(took.Seconds())
}

// Ended counts one task that ended.
func (o orderMeter) Ended(status order.TaskStatus, reason string) {
	if status == order.Succeeded {
		o.m.Written.Inc()
		return
	}
	o.m.Failed.With(reason).Inc()
}

// Fault counts a step after a commit that went wrong.
func (o orderMeter) Fault(step string) { o.m.Faults.With(step).Inc() }

// streamMeter puts what the streams do into figures.
func (a *App) streamMeter() stream.Metrics {
	m := a.streamMetrics
	return stream.Metrics{
		Count: func(event stream.Event, topic string, n int) {
			m.Messages.With(topic, string(event)).Add(float64(n))
			switch event {
			case stream.Claimed:
				m.Claimed.Add(float64(n))
			case stream.DeadLettered:
				m.Dead.Add(float64(n))
			case stream.Trimmed:
				m.Trimmed.Add(float64(n))
			case stream.GroupLost:
				m.Regroups.Add(float64(n))
			default: // in Messages alone
			}
		},
	}
}
