package inbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/notifier"
)

// Reporter reports what waits to the inboxes of all processes. It is safe for concurrent
// use.
type Reporter struct {
	bus   *notifier.Bus
	clock clock.Clock
	log   *slog.Logger
}

// NewReporter returns a Reporter.
func NewReporter(bus *notifier.Bus, c clock.Clock, log *slog.Logger) *Reporter {
	return &Reporter{bus: bus, clock: c, log: log}
}

// Changed reports that something is new or decided: inboxes with followers read again. Call
// it after the commit.
func (r *Reporter) Changed(ctx context.Context) { r.bus.Signal(ctx, changedKey) }

// ProviderAway reports until when a payment provider is away; a zero time means that it
// answers.
func (r *Reporter) ProviderAway(ctx context.Context, provider string, until time.Time) {
	value, err := json.Marshal(providerReport{Until: until})
	if err == nil {
		err = r.bus.Publish(ctx, []notifier.StatusEntry{{Key: providerKey(provider), Revision: r.clock.Now().UnixNano(),
			Value: value}})
	}
	if err != nil {
		r.log.WarnContext(ctx, "report about a payment provider", slog.String("provider", provider), slog.Any("error", err))
	}
}
