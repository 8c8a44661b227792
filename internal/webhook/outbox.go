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
	reads   uint64        // guarded by mu; reads begun, and calls of Forget
	stored  uint64        // guarded by mu; the read that wanted is of
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
	if read == 0 {
		return wanted[kind], nil
	}
	wanted, err := o.wantedKinds(ctx, tx)
	if err != nil {
		o.Forget()
		return false, err
	}
	o.store(read, wanted)
	return wanted[kind], nil
}

// known returns the wanted kinds, or the number of the read that the caller has to do. If
// they are only out of date, others use the former ones meanwhile.
func (o *Outbox) known() (wanted map[Kind]bool, read uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if o.wanted != nil && now.Before(o.expires) {
		return o.wanted, 0
	}
	o.expires = now.Add(wantedFor)
	o.reads++
	return o.wanted, o.reads
}

// store keeps the result of a read, unless a later one has been stored or what it read was
// forgotten: a slow read may have begun before an endpoint was created.
func (o *Outbox) store(read uint64, wanted map[Kind]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if read > o.stored {
		o.wanted, o.stored = wanted, read
	}
}

// Forget makes each transaction read who receives events until one has done so. The
// process that changes an endpoint or a token calls it.
func (o *Outbox) Forget() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wanted, o.expires = nil, time.Time{}
	o.reads++
	o.stored = o.reads
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
