package postgres

import (
	"context"
	"fmt"

	"seckill/ent"
)

const (
	// PurgeBatch bounds the rows that one transaction of Purge deletes.
	PurgeBatch = 1000
	// maxPurges bounds the transactions of one Purge: 100,000 rows.
	maxPurges = 100
)

// Purge deletes old rows in batches, each in a transaction of its own, until a batch has
// fewer than PurgeBatch rows; the rest waits for the next call. The function deletes at
// most limit rows and returns their number. The result is the total under a name, as a
// periodic.Step returns it. An error names that, too.
func (db *DB) Purge(ctx context.Context, name string, batch func(ctx context.Context, tx *ent.Tx, limit int) (int, error)) (map[string]int, error) {
	total := 0
	for range maxPurges {
		n := 0
		err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			n, err = batch(ctx, tx, PurgeBatch)
			return err
		})
		if err != nil {
			return map[string]int{name: total}, fmt.Errorf("purge %s: %w", name, err)
		}
		total += n
		if n < PurgeBatch {
			break
		}
	}
	return map[string]int{name: total}, nil
}
