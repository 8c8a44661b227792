package inbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/periodic"
)

const (
	// changedKey is the status bus key of the signal that something is new or decided.
	changedKey = "inbox:changed"
	// entriesKey is the hub's key of the entries that this process has read.
	entriesKey = "inbox"
	// lookEvery is how often a process looks for the signal and at its alarms.
	lookEvery = 500 * time.Millisecond
	// idleLook is the longest pause between two looks without followers.
	idleLook = 5 * time.Second
	// readEvery is how often a process with followers reads although nothing was signalled.
	readEvery = 5 * time.Second
)

// Follow follows the entries until ctx ends.
func (b *Inbox) Follow(ctx context.Context) (*notifier.Follower[[]Entry], error) {
	return notifier.Follow(ctx, b.cfg.Hub, entriesKey, func(ctx context.Context) (notifier.State[[]Entry], error) {
		return b.current(ctx, false)
	})
}

// current returns the entries as last read for followers, or reads them when they are
// older than readEvery, or changed. Followers receive entries that differ.
func (b *Inbox) current(ctx context.Context, changed bool) (notifier.State[[]Entry], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.cfg.Clock.Now(); changed || b.changes == 0 || now.Sub(b.readAt) >= readEvery {
		entries, err := b.Read(ctx)
		if err != nil {
			return notifier.State[[]Entry]{}, err
		}
		b.readAt = now
		if b.changes == 0 || !slices.EqualFunc(entries, b.entries, func(x, y Entry) bool { return reflect.DeepEqual(x, y) }) {
			b.entries = entries
			b.changes++
			b.cfg.Hub.Publish(notifier.Event{Key: entriesKey, Revision: b.changes, Value: entries})
		}
	}
	return notifier.State[[]Entry]{Value: b.entries, Revision: b.changes}, nil
}

// Run keeps followers current until ctx ends: one process reads at most twice a second,
// whatever the number of followers, and not at all without any.
func (b *Inbox) Run(ctx context.Context) error {
	signal, err := b.cfg.Hub.Subscribe(changedKey)
	if err != nil {
		return err
	}
	defer signal.Close()
	reports := map[string]*notifier.Subscription{}
	for _, name := range b.cfg.Providers {
		if reports[name], err = b.cfg.Hub.Subscribe(providerKey(name)); err != nil {
			return err
		}
		defer reports[name].Close()
	}
	var alarmed []Entry
	followed := func() bool { return b.cfg.Hub.Followed(entriesKey) }
	return periodic.Loop{Name: "inbox", Every: lookEvery, Idle: idleLook, Busy: followed, Log: b.cfg.Log,
		Step: func(ctx context.Context) (map[string]int, error) {
			now := b.cfg.Clock.Now()
			for name, sub := range reports {
				if e, filled := sub.Take(); filled {
					b.alarms.recordReport(name, e, now)
				}
			}
			b.alarms.lost(b.lostGates(ctx), now)
			if !followed() {
				return nil, nil
			}
			_, changed := signal.Take()
			before := alarmed
			alarmed = b.alarms.entries(now)
			_, err := b.current(ctx, changed || len(alarmed) != len(before))
			return nil, err
		}}.Run(ctx)
}

// lostGates returns the sales that are loaded and have lost a gate. An unreadable
// catalogue is reported by other code.
func (b *Inbox) lostGates(ctx context.Context) (lost []id.Sale) {
	loaded, err := b.cfg.Catalog.Loaded(ctx)
	if err != nil {
		return nil
	}
	for _, v := range loaded {
		for _, item := range v.Items {
			if b.cfg.Stock.Lost(item.ID) {
				lost = append(lost, v.ID)
				break
			}
		}
	}
	return lost
}

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
