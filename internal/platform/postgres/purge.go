package postgres

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
)

const (
	// PurgeBatch bounds the rows that one transaction of Purge deletes.
	PurgeBatch = 1000
	// maxPurges bounds the transactions of one Purge: 100,000 rows.
	maxPurges = 100
)

// Purge deletes the rows of a table that match in batches, each in a transaction of its own,
// until a batch has fewer than PurgeBatch rows; the rest waits for the next call. match is
// predicates of ent, and an order. The result is the total under a name, as a periodic.Step
// returns it. An error names that, too.
func (db *DB) Purge(ctx context.Context, name, table string, match ...func(*sql.Selector)) (map[string]int, error) {
	build := sql.Dialect(db.Dialect)
	old := build.Select().From(sql.Table(table))
	for _, where := range match {
		where(old)
	}
	query, args := build.Delete(table).Where(sql.In("id", old.Select(old.C("id")).Limit(PurgeBatch))).Query()
	total := 0
	for range maxPurges {
		var n int64
		err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			result, err := tx.ExecContext(ctx, query, args...)
			if err == nil {
				n, err = result.RowsAffected()
			}
			return err
		})
		if err != nil {
			return map[string]int{name: total}, fmt.Errorf("purge %s: %w", name, err)
		}
		total += int(n)
		if n < PurgeBatch {
			break
		}
	}
	return map[string]int{name: total}, nil
}
