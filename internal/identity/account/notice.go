package account

import (
	"context"

	"seckill/ent"
	"seckill/ent/accountlink"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
)

// passwordChanged saves a user with a new password, voids the links that are out, and
// sends a notice.
func (a *Admin) passwordChanged(ctx context.Context, tx *ent.Tx, update *ent.UserUpdateOne,
	language locale.Language) (*ent.User, error) {
	row, err := update.Save(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.voidLinks(ctx, tx, row.ID); err != nil {
		return nil, err
	}
	return row, a.notify(ctx, tx, row, mail.PasswordChanged, language)
}

// voidLinks makes the unused links of a user invalid.
func (a *Admin) voidLinks(ctx context.Context, tx *ent.Tx, user id.User) error {
	return tx.AccountLink.Update().Where(accountlink.UserID(user), accountlink.UsedAtIsNil()).
		SetUsedAt(a.cfg.Store.clock.Now()).Exec(ctx)
}

// notify writes a message without a secret to the user's address or number, if it is
// reached.
func (a *Admin) notify(ctx context.Context, tx *ent.Tx, to *ent.User, kind mail.Kind, language locale.Language) error {
	outbox := outboxOf(to.Account, a.cfg.Mail, a.cfg.Texts)
	if outbox == nil {
		return nil
	}
	return outbox.Write(ctx, tx, mail.Message{User: to.ID, To: to.Account, Kind: kind, Language: language,
		Content: mail.Content{Path: "/"}})
}
