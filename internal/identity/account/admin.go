package account

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"seckill/ent"
	"seckill/ent/accountlink"
	"seckill/ent/user"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// AdminConfig configures an Admin. Fields are required unless stated otherwise.
type AdminConfig struct {
	Store       *Store
	Directory   *Directory
	Revocations *auth.Revocations
	Security    *SecurityLog
	Log         *slog.Logger
	// Mail sends users a notice of a new password; nil = none is sent.
	Mail *mail.Outbox
	// Texts does the same for accounts with a phone number; nil = none is sent.
	Texts *mail.Outbox
}

// Admin changes users for operators. Each change ends the user's sessions, with tokens
// and sockets, in all processes within a second, and is written to the security log. It
// is safe for concurrent use.
type Admin struct{ cfg AdminConfig }

// NewAdmin returns an Admin.
func NewAdmin(cfg AdminConfig) *Admin { return &Admin{cfg: cfg} }

// ByAccount returns the user of an account, which is normalised first; nil if there is
// none.
func (a *Admin) ByAccount(ctx context.Context, account string) (*User, error) {
	found, _, err := a.cfg.Store.byAccount(ctx, a.cfg.Store.names.lookup(account))
	return found, err
}

// SetRole changes the role of a user. It returns nil if the user does not exist. by is
// Nil for the command line.
func (a *Admin) SetRole(ctx context.Context, by, userID id.User, role auth.Role) (*User, error) {
	if !role.Valid() {
		return nil, fault.New(fault.BadInput, "There is no such role.")
	}
	if by == userID {
		return nil, fault.New(fault.Forbidden, "Another administrator has to change your role.")
	}
	changed, err := a.change(ctx, userID, func(u *ent.UserUpdateOne) { u.SetRole(user.Role(role)) })
	if err != nil || changed == nil {
		return nil, err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventRoleChanged, Actor: by, Subject: userID, Detail: string(role)})
	_, err = a.endAll(ctx, userID, id.Session{}, endedByRole)
	return changed, err
}

// maxReason bounds why a user is disabled, in characters.
const maxReason = 200

// Disable prevents a user from signing in. It returns nil if the user does not exist.
func (a *Admin) Disable(ctx context.Context, by, userID id.User, reason string) (*User, error) {
	reason = typed.Text(reason)
	if rule := fault.Lines(reason, 0, maxReason); rule != (fault.Rule{}) {
		return nil, badField("note", rule)
	}
	if by == userID {
		return nil, fault.New(fault.Forbidden, "Another administrator has to disable your account.")
	}
	changed, err := a.change(ctx, userID, func(u *ent.UserUpdateOne) {
		u.SetDisabledAt(a.cfg.Store.clock.Now()).SetDisabledReason(reason)
	})
	if err != nil || changed == nil {
		return nil, err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventDisabled, Actor: by, Subject: userID, Detail: reason})
	_, err = a.endAll(ctx, userID, id.Session{}, endedByDisabling)
	return changed, err
}

// Enable lets a disabled user sign in again. It returns nil if the user does not exist.
func (a *Admin) Enable(ctx context.Context, by, userID id.User) (*User, error) {
	changed, err := a.change(ctx, userID, func(u *ent.UserUpdateOne) { u.ClearDisabledAt().SetDisabledReason("") })
	if err != nil || changed == nil {
		return nil, err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventEnabled, Actor: by, Subject: userID})
	return changed, nil
}

// EndSessions ends all sessions of a user and returns their number. The refusal is
// NOT_FOUND.
func (a *Admin) EndSessions(ctx context.Context, by, userID id.User) (int, error) {
	if u, err := a.cfg.Store.User(ctx, userID); u == nil || err != nil {
		return 0, cmp.Or(err, refused(fault.Unknown, "userId"))
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventSessionsEnded, Actor: by, Subject: userID})
	return a.endAll(ctx, userID, id.Session{}, endedByStaff)
}

// SetPassword sets a password without checking the present one, and sends the user a
// notice. The refusal is BadField.
func (a *Admin) SetPassword(ctx context.Context, by id.User, u *User, password string) error {
	password = normalisePassword(password)
	if err := checkPassword(password, u.Account, "password"); err != nil {
		return err
	}
	hash, err := HashPassword(password)
	if err != nil {
		return err
	}
	_, err = a.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		row, err := tx.User.Get(ctx, u.ID)
		if err != nil {
			return nil, err
		}
		return a.passwordChanged(ctx, tx, row.Update().AddVersion(1).SetPasswordHash(hash), locale.Language(row.Language))
	})
	if err != nil {
		return err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventPasswordChanged, Actor: by, Subject: u.ID, Detail: "by staff"})
	_, err = a.endAll(ctx, u.ID, id.Session{}, endedByPassword)
	return err
}

// change updates a user and invalidates the cached user in all processes. It returns nil
// if the user does not exist.
func (a *Admin) change(ctx context.Context, userID id.User, set func(*ent.UserUpdateOne)) (*User, error) {
	return a.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		update := tx.User.UpdateOneID(userID).AddVersion(1)
		set(update)
		return update.Save(ctx)
	})
}

// changeWith is like change, with a transaction that returns the user as changed.
func (a *Admin) changeWith(ctx context.Context, do func(ctx context.Context, tx *ent.Tx) (*ent.User, error)) (*User,
	error) {
	changed, err := a.cfg.Store.update(ctx, do)
	if err != nil || changed == nil {
		return nil, err
	}
	a.cfg.Directory.cache(ctx, changed)
	if err := a.cfg.Revocations.UserChanged(ctx, changed.ID); err != nil {
		return nil, fmt.Errorf("the user was changed: %w", err)
	}
	return changed, nil
}

// endAll ends the sessions of a user except keep and returns their number.
func (a *Admin) endAll(ctx context.Context, userID id.User, keep id.Session, why string) (int, error) {
	live, err := a.cfg.Store.endAll(ctx, userID, keep, why)
	if err != nil {
		return 0, err
	}
	return len(live), a.cfg.Revocations.Revoke(ctx, live...)
}

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
