package mail

import (
	"context"
	"time"

	"seckill/ent"
	entmail "seckill/ent/mail"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/postgres"
)

// keep is the retention of e-mails that have ended.
const keep = 7 * 24 * time.Hour

// Purge deletes e-mails that ended a week ago, in batches.
func Purge(ctx context.Context, db *postgres.DB, c clock.Clock) (map[string]int, error) {
	return db.Purge(ctx, "mails_deleted", func(ctx context.Context, tx *ent.Tx, limit int) (int, error) {
		ids, err := tx.Mail.Query().Where(entmail.EndedAtLT(c.Now().Add(-keep))).Limit(limit).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return tx.Mail.Delete().Where(entmail.IDIn(ids...)).Exec(ctx)
	})
}
