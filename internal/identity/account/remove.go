package account

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Remove deletes the account of a user on behalf of the command line, as Service.Delete does,
// and sends no message. The refusal is CONFLICT while money or stock of the user is on its way.
func (a *Admin) Remove(ctx context.Context, user id.User, why string) error {
	gone, err := a.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		if err := unfinished(ctx, tx, user); err != nil {
			return nil, err
		}
		return a.cfg.Store.erase(ctx, tx, user, why)
	})
	if err != nil || gone == nil {
		return err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventDeleted, Subject: user, Detail: why})
	_, err = a.endAll(ctx, user, id.Session{}, endedByDeletion)
	return err
}

// Purge deletes the rows of removed users who have no orders. The books name all others.
func (a *Admin) Purge(ctx context.Context, users []id.User) error {
	err := a.cfg.Store.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM users WHERE id = ANY($1::uuid[]) AND account = '`+DeletedPrefix+`' || id::text
			AND NOT EXISTS (SELECT FROM orders WHERE user_id = users.id)
			AND NOT EXISTS (SELECT FROM waitlist_entries WHERE user_id = users.id)`, postgres.Array(users, postgres.AppendUUID[id.User]))
		return err
	})
	if err != nil {
		return fmt.Errorf("delete users: %w", err)
	}
	return nil
}
