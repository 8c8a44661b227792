package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/ent"
	"seckill/ent/webhookendpoint"
	"seckill/internal/clock"
	"seckill/internal/id"
)

// wantedFor is how long a process uses what it read about endpoints: events of the first
// second of a new endpoint may be missing.
const wantedFor = time.Second

// Outbox writes events in the transactions of their facts, as long as an endpoint or a
// reader of pages wants them. A nil *Outbox writes nothing. It is safe for concurrent use.
type Outbox struct {
	clock  clock.Clock
	pulled func(context.Context, *ent.Tx) (bool, error)

	mu      sync.Mutex
	wanted  map[Kind]bool // guarded by mu; nil = not read yet
	expires time.Time     // guarded by mu; of wanted
}

// NewOutbox returns an Outbox. A nil clock is clock.System. pulled reports whether another
// system may read pages of events; nil = none does.
func NewOutbox(c clock.Clock, pulled func(context.Context, *ent.Tx) (bool, error)) *Outbox {
	if c == nil {
		c = clock.System{}
	}
	if pulled == nil {
		pulled = func(context.Context, *ent.Tx) (bool, error) { return false, nil }
	}
	return &Outbox{clock: c, pulled: pulled}
}

// Wants reports whether another system receives events of a kind. It reads the endpoints
// in the transaction, at most once a second.
func (o *Outbox) Wants(ctx context.Context, tx *ent.Tx, kind Kind) (bool, error) {
	if o == nil {
		return false, nil
	}
	wanted, read := o.known()
	if !read {
		return wanted[kind], nil
	}
	wanted, err := o.wantedKinds(ctx, tx)
	if err != nil {
		o.forget()
		return false, err
	}
	o.mu.Lock()
	o.wanted = wanted
	o.mu.Unlock()
	return wanted[kind], nil
}

// known returns the wanted kinds, and whether the caller has to read them again. Others
// use the former ones meanwhile.
func (o *Outbox) known() (wanted map[Kind]bool, read bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if o.wanted != nil && now.Before(o.expires) {
		return o.wanted, false
	}
	o.expires = now.Add(wantedFor)
	return o.wanted, true
}

// forget makes the next transaction read the endpoints.
func (o *Outbox) forget() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expires = time.Time{}
}

// wantedKinds returns the kinds of events that other systems receive.
func (o *Outbox) wantedKinds(ctx context.Context, tx *ent.Tx) (map[Kind]bool, error) {
	rows, err := tx.WebhookEndpoint.Query().Where(webhookendpoint.StateEQ(webhookendpoint.StateENABLED)).
		Select(webhookendpoint.FieldKinds).Limit(maxEndpoints).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read webhook endpoints: %w", err)
	}
	wanted := map[Kind]bool{}
	all, err := o.pulled(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read who reads events: %w", err)
	}
	if all {
		for _, kind := range Kinds() {
			wanted[kind] = true
		}
	}
	for _, row := range rows {
		for _, kind := range kindsOf(row.Kinds) {
			wanted[kind] = true
		}
	}
	return wanted, nil
}

// Write writes events of one kind with one statement, in the transaction of their facts,
// if an endpoint receives them. events is called only then.
func (o *Outbox) Write(ctx context.Context, tx *ent.Tx, kind Kind, events func() []Event) error {
	wants, err := o.Wants(ctx, tx, kind)
	if err != nil || !wants {
		return err
	}
	var rows []*ent.WebhookEventCreate
	for _, e := range events() {
		body, err := e.payload()
		if err != nil {
			return err
		}
		rows = append(rows, tx.WebhookEvent.Create().SetMessageID(id.New()).SetKind(string(e.Kind)).SetSubject(e.Subject).
			SetPayload(body).SetCreatedAt(e.At.UTC()))
	}
	if err := tx.WebhookEvent.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("write %d events %s: %w", len(rows), kind, err)
	}
	return nil
}
