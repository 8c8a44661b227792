package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
)

// result is how an attempt ended.
type result struct {
	outcome outcome
	status  int // 0 = no response
	err     string
	took    time.Duration
}

// Reasons for which endpoints are disabled.
const (
	reasonFailing = "all deliveries failed for a day"
	reasonGone    = "the endpoint answered 410 Gone"
)

// record stores the result of an attempt and its effect on the endpoint. An attempt whose
// lease ended has no effect: another process made the next one.
func (s *Service) record(ctx context.Context, d *ent.WebhookDelivery, to *ent.WebhookEndpoint, res result) error {
	now := s.now()
	due := now.Add(pauses.After(d.Attempts))
	if res.outcome == failed && due.After(d.RetryUntil) {
		res.outcome = givenUp
	}
	reason := ""
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := tx.WebhookDelivery.Update().
			Where(webhookdelivery.ID(d.ID), webhookdelivery.Attempts(d.Attempts), webhookdelivery.StateEQ(webhookdelivery.StatePENDING)).
			SetStatusCode(res.status).SetError(res.err).SetDurationMs(int(res.took.Milliseconds()))
		switch res.outcome {
		case delivered:
			update.SetState(webhookdelivery.StateDELIVERED).SetEndedAt(now)
		case givenUp:
			update.SetState(webhookdelivery.StateGIVEN_UP).SetEndedAt(now)
		case failed:
			update.SetDueAt(due)
		}
		if n, err := update.Save(ctx); err != nil || n == 0 {
			return err
		}
		var err error
		reason, err = s.rate(ctx, tx, to, res)
		return err
	})
	if err != nil {
		return fmt.Errorf("record delivery %s: %w", d.ID, err)
	}
	s.metrics.attempt(res.outcome, res.took)
	if reason != "" {
		s.outbox.Forget()
		s.metrics.disabled.Inc()
		s.reportChange(ctx)
		s.log.ErrorContext(ctx, "webhook endpoint disabled", slog.String("endpoint", to.ID.Public()), slog.String("reason", reason))
	}
	return nil
}

// rate notes on the endpoint whether deliveries succeed, and disables it when they do not.
// It returns the reason when this call did. The row changes only with the first success
// or failure of a series.
func (s *Service) rate(ctx context.Context, tx *ent.Tx, to *ent.WebhookEndpoint, res result) (reason string, err error) {
	update := tx.WebhookEndpoint.Update().Where(webhookendpoint.ID(to.ID))
	now := s.now()
	switch {
	case res.outcome == delivered && to.FailingSince == nil, res.outcome == givenUp && res.status == 0 && res.took == 0:
		return "", nil
	case res.outcome == delivered:
		return "", update.Where(webhookendpoint.FailingSinceNotNil()).ClearFailingSince().Exec(ctx)
	case res.status == http.StatusGone:
		reason = reasonGone
	case to.FailingSince == nil:
		return "", update.Where(webhookendpoint.FailingSinceIsNil()).SetFailingSince(now).Exec(ctx)
	case now.Sub(*to.FailingSince) < failingFor:
		return "", nil
	default:
		reason = reasonFailing
		update.Where(webhookendpoint.FailingSinceLTE(now.Add(-failingFor)))
	}
	n, err := update.Where(webhookendpoint.StateEQ(webhookendpoint.StateENABLED)).
		SetState(webhookendpoint.StateDISABLED).SetReason(reason).SetUpdatedAt(now).Save(ctx)
	if n == 0 {
		reason = ""
	}
	return reason, err
}
