package mail

import (
	"context"
	"time"

	entmail "seckill/ent/mail"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/postgres"
)

// keep is the retention of e-mails that have ended.
const keep = 7 * 24 * time.Hour

// Purge deletes e-mails that ended a week ago, in batches.
func Purge(ctx context.Context, db *postgres.DB, c clock.Clock) (map[string]int, error) {
	return db.Purge(ctx, "mails_deleted", entmail.Table, entmail.EndedAtLT(c.Now().Add(-keep)))
}
