package order

import (
	"context"
	"encoding/json"
)

// Waiting returns how many requests wait for a batch.
func Waiting(w *Writer) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}

// InFlight returns how many batches may be under way at once.
func InFlight(w *Writer) int { return w.inFlight }

// Portable makes a writer on Postgres insert as on every other database.
func Portable(w *Writer) { w.rows = portable{} }

// CopyOf returns the copy of an order for Redis, and what encoding/json makes of
// the same.
func CopyOf(o *Order, atMs int64) (byHand, byJSON []byte, err error) {
	byJSON, err = json.Marshal(orderRecord{o, atMs})
	return o.appendRecord(nil, atMs), byJSON, err
}

// RecordOf returns what encoding/json makes of a task's record.
func RecordOf(t Task) ([]byte, error) {
	return json.Marshal(taskRecord{
		ID: t.ID, User: t.User, Sale: t.Sale, Item: t.Item, Quantity: t.Quantity, Status: t.Status, Revision: t.Revision,
		Failure: t.Failure, CreatedAtMs: t.CreatedAt.UnixMilli(), UpdatedAtMs: t.UpdatedAt.UnixMilli(),
	})
}

// WireOf returns a request as it is written.
func WireOf(r Requested) ([]byte, error) { return r.marshal() }

// ReadWire reads a request.
func ReadWire(text []byte) (r Requested, err error) {
	err = r.unmarshal(text)
	return r, err
}

// Persist writes requests in one transaction.
func Persist(ctx context.Context, w *Writer, requests []Requested) error {
	_, err := w.persist(ctx, requests)
	return err
}
