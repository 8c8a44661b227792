package webhook

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/ent"
	"seckill/ent/webhookevent"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// MaxEvents bounds a page of events: 100 of the largest have 1.6 MB.
const MaxEvents = 100

// Cursor is a position in the sequence of all events: the order in which they were
// dispatched. Batches are committed one after the other, so no event appears before a
// cursor later. The zero value is before the first event.
type Cursor struct{ batch, id int64 }

// String returns the cursor as clients receive it.
func (c Cursor) String() string {
	return strconv.FormatInt(c.batch, 36) + "." + strconv.FormatInt(c.id, 36)
}

// ParseCursor is the inverse of String.
func ParseCursor(text string) (c Cursor, err error) {
	batch, row, _ := strings.Cut(text, ".")
	if c.batch, err = strconv.ParseInt(batch, 36, 64); err != nil {
		return c, fmt.Errorf("cursor %q: %w", text, err)
	}
	if c.id, err = strconv.ParseInt(row, 36, 64); err != nil {
		return c, fmt.Errorf("cursor %q: %w", text, err)
	}
	return c, nil
}

// Record is an event as other systems read it.
type Record struct {
	Cursor  Cursor
	ID      id.Event // the same as in deliveries to endpoints
	Kind    Kind
	Subject string
	Payload []byte // JSON
	At      time.Time
}

// EventsInput selects a page of events.
type EventsInput struct {
	After Cursor
	Kinds []Kind // empty = all
	Limit int    // at most MaxEvents
}

// Events returns the events after a cursor in their order, and whether more follow. A
// cursor whose event was purged is a fault BAD_USER_INPUT: events after it may be missing.
func (s *Service) Events(ctx context.Context, in EventsInput) (page []Record, more bool, err error) {
	if err := s.checkCursor(ctx, in.After); err != nil {
		return nil, false, err
	}
	query := s.cfg.DB.Ent.WebhookEvent.Query().Where(webhookevent.BatchGT(0), webhookevent.Or(
		webhookevent.BatchGT(in.After.batch),
		webhookevent.And(webhookevent.Batch(in.After.batch), webhookevent.IDGT(in.After.id)),
	)).Order(ent.Asc(webhookevent.FieldBatch, webhookevent.FieldID)).Limit(min(in.Limit, MaxEvents) + 1)
	if len(in.Kinds) > 0 {
		names := collect.Map(in.Kinds, func(k Kind) string { return string(k) })
		query.Where(webhookevent.KindIn(names...))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read events: %w", err)
	}
	if more = len(rows) > in.Limit; more {
		rows = rows[:in.Limit]
	}
	page = make([]Record, len(rows))
	for i, row := range rows {
		page[i] = Record{
			Cursor: Cursor{row.Batch, row.ID}, ID: row.MessageID, Kind: Kind(row.Kind), Subject: row.Subject,
			Payload: row.Payload, At: row.CreatedAt.UTC(),
		}
	}
	return page, more, nil
}

// checkCursor refuses a cursor that is older than what is kept. The number of a batch is
// at least its time in milliseconds.
func (s *Service) checkCursor(ctx context.Context, c Cursor) error {
	if c == (Cursor{}) || c.batch > s.now().Add(-KeepEvents).UnixMilli() {
		return nil
	}
	kept, err := s.cfg.DB.Ent.WebhookEvent.Query().Where(webhookevent.ID(c.id), webhookevent.Batch(c.batch)).Exist(ctx)
	if err != nil {
		return fmt.Errorf("read event of a cursor: %w", err)
	}
	if !kept {
		return fault.New(fault.BadInput, "The cursor is too old: events are kept for 18 days. Read what you need again, then begin without a cursor.")
	}
	return nil
}
