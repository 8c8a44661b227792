package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"seckill/internal/inbox"
	"seckill/internal/notifier"
	"seckill/internal/webhook"
)

// inboxParts are the stages that only the inbox needs.
type inboxParts struct {
	admin    admin
	payments payments
	webhooks *webhook.Service
}

func newInbox(b base, g gates, m messages, in inboxParts) *inbox.Inbox {
	return inbox.New(inbox.Config{
		Hub: m.hub, Sales: g.sales, Catalog: g.catalog, Stock: g.stock, Operator: in.admin.operator,
		Payments: in.payments.service, Providers: in.payments.service.Names(), Letters: m.deadLetters, Webhooks: in.webhooks,
		Clock: b.clock, Log: b.log,
	})
}

// reportAway returns a function that reports to the inboxes of all processes whether a
// payment provider is away.
func reportAway(b base, m messages) func(ctx context.Context, provider string, until time.Time) {
	return func(ctx context.Context, provider string, until time.Time) {
		value, err := json.Marshal(inbox.ProviderReport{Until: until})
		if err == nil {
			err = m.bus.Publish(ctx, []notifier.StatusEntry{{Key: inbox.ProviderKey(provider), Revision: b.clock.Now().UnixNano(), Value: value}})
		}
		if err != nil {
			b.log.WarnContext(ctx, "report about a payment provider", slog.String("provider", provider), slog.Any("error", err))
		}
	}
}
