package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/ent"
	"seckill/ent/webhookendpoint"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

const (
	// wantedFor is how long a process uses what it read about who receives events.
	wantedFor = time.Second
	// renewAfter is when one transaction reads it again, while others use the former result.
	renewAfter = wantedFor / 2
)

// Outbox writes events in the transactions of their facts, as long as an endpoint or a
// reader of pages wants them. A nil *Outbox writes nothing. It is safe for concurrent use.
type Outbox struct {
	clock  clock.Clock
	pulled func(context.Context, *ent.Tx) (bool, error)

	mu     sync.Mutex
	wanted map[Kind]bool // guarded by mu; nil = not read yet
	began  time.Time     // guarded by mu; when the read began that wanted is of
	renew  time.Time     // guarded by mu; when the next read begins
	reads  uint64        // guarded by mu; reads begun, and calls of Forget
	stored uint64        // guarded by mu; the read that wanted is of
}

// read is a read of who receives events; zero = none is needed.
type read struct {
	number uint64
	began  time.Time
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
// in the transaction, about twice a second.
func (o *Outbox) Wants(ctx context.Context, tx *ent.Tx, kind Kind) (bool, error) {
	if o == nil {
		return false, nil
	}
	wanted, next := o.known()
	if next.number == 0 {
		return wanted[kind], nil
	}
	wanted, err := o.wantedKinds(ctx, tx)
	if err != nil {
		o.Forget()
		return false, err
	}
	o.store(next, wanted)
	return wanted[kind], nil
}

// known returns the wanted kinds, or the read that the caller has to do.
func (o *Outbox) known() (wanted map[Kind]bool, next read) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if o.wanted != nil && now.Before(o.renew) && now.Before(o.began.Add(wantedFor)) {
		return o.wanted, read{}
	}
	o.renew = now.Add(renewAfter)
	o.reads++
	return nil, read{o.reads, now}
}

// store keeps the result of a read, unless a later one has been stored or what it read was
// forgotten: a slow read may have begun before an endpoint was created.
func (o *Outbox) store(done read, wanted map[Kind]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if done.number > o.stored {
		o.wanted, o.stored, o.began = wanted, done.number, done.began
	}
}

// Added is Forget after a reader was added. It returns when all processes know the
// reader, so that no event of a later transaction is missing: after a second, or when ctx
// ends.
func (o *Outbox) Added(ctx context.Context) {
	o.Forget()
	known := time.NewTimer(wantedFor)
	defer known.Stop()
	select {
	case <-known.C:
	case <-ctx.Done():
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
	o.wanted = nil
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
		rows = append(rows, tx.WebhookEvent.Create().SetMessageID(id.New[id.Event]()).SetKind(string(e.Kind)).
			SetSubject(e.Subject).
			SetPayload(body).SetCreatedAt(e.At.UTC()))
	}
	if err := tx.WebhookEvent.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("write %d events %s: %w", len(rows), kind, err)
	}
	return nil
}
