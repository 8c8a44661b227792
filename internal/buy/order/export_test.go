package order

import (
	"context"
	"encoding/json"
	"time"

	"seckill/internal/platform/id"
)

// Portable makes a writer on Postgres use the inserts for other databases.
func Portable(w *Writer) { w.rows = portable{} }

// CopyOf returns the copy of an order for Redis in both encodings: the package's own
// and encoding/json's.
func CopyOf(o *Order, atMs int64) (byHand, byJSON []byte, err error) {
	byJSON, err = json.Marshal(orderRecord{o, atMs})
	return o.appendRecord(nil, atMs), byJSON, err
}

// RecordOf returns the record of a task as encoding/json encodes it.
func RecordOf(t Task) ([]byte, error) {
	return json.Marshal(taskRecord{
		ID: t.ID, User: t.User, Sale: t.Sale, Item: t.Item, Quantity: t.Quantity, Status: t.Status, Revision: t.Revision,
		Failure: t.Failure, Vanished: t.Vanished, CreatedAtMs: t.CreatedAt.UnixMilli(), UpdatedAtMs: t.UpdatedAt.UnixMilli(),
	})
}

// Persist writes requests in one transaction.
func Persist(ctx context.Context, w *Writer, requests []Request) error {
	_, err := w.persist(ctx, requests, nil)
	return err
}

// Pack returns the packed copy of a fresh order.
func Pack(o *Order, copiedAt time.Time) []byte { return o.appendPacked(nil, copiedAt) }

// Unpack returns the order of a packed copy and the time of the copy.
func Unpack(id id.Order, packed []byte) (*Order, int64, error) {
	r, err := unpack(id, packed)
	return r.Order, r.CopiedAtMs, err
}

// PutJSON writes the copy of an order as processes before packed copies do.
func PutJSON(ctx context.Context, c *Cache, shard int, o *Order, copiedAt time.Time) error {
	return c.conn.Cmd.HSet(ctx, c.bucket(shard, id.Task(o.ID)), orderField(o.ID), o.appendRecord(nil, copiedAt.UnixMilli())).Err()
}

// Allowed reports whether an order may move between two states, and returns the
// corresponding move of stock.
func Allowed(from, to Status) (Movement, bool) {
	e, ok := edgeOf(from, to)
	return e.stock, ok
}
