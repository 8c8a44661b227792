package mail

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	entmail "seckill/ent/mail"
	"seckill/internal/clock"
	"seckill/internal/postgres"
)

const (
	// keep is the retention of e-mails that have ended.
	keep = 7 * 24 * time.Hour
	// purgeBatch bounds one transaction, and maxPurges those of one step.
	purgeBatch = 1000
	maxPurges  = 100
)

// Purge deletes e-mails that ended a week ago, in batches, at most 100,000.
func Purge(ctx context.Context, db *postgres.DB, c clock.Clock) (map[string]int, error) {
	total := 0
	for range maxPurges {
		n := 0
		err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			ids, err := tx.Mail.Query().Where(entmail.EndedAtLT(c.Now().Add(-keep))).Limit(purgeBatch).IDs(ctx)
			if err != nil || len(ids) == 0 {
				return err
			}
			n, err = tx.Mail.Delete().Where(entmail.IDIn(ids...)).Exec(ctx)
			return err
		})
		total += n
		if err != nil {
			return map[string]int{"mails_deleted": total}, fmt.Errorf("purge e-mails: %w", err)
		}
		if n < purgeBatch {
			break
		}
	}
	return map[string]int{"mails_deleted": total}, nil
}
