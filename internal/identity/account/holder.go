package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/session"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// externalAccount begins the account name of a user whose tokens name no address that is
// free. It cannot be registered.
const externalAccount = "external "

// Holder is the user of an access token of another system.
type Holder struct {
	External            // Subject is the customer's id in the other system: User.ExternalID
	Verified  bool      // the other system has verified the customer's contact
	IssuedAt  time.Time // of the token
	ExpiresAt time.Time
}

// AdmitHolder returns the user of a token that package issuer has verified, and the
// session that all tokens of the user from this issuer share. It creates the user at the
// first time. The session has no refresh token; it ends like others, and with it all
// tokens that were issued before: UNAUTHENTICATED, also for a disabled user.
//
// The user is the one with the identity (issuer, subject), else the customer with the
// external id, else the customer with the same address, verified here.
func (s *Service) AdmitHolder(ctx context.Context, in Holder) (*User, id.Session, error) {
	if !externalIDFormat.MatchString(in.Subject) {
		return nil, id.Session{}, fault.New(fault.Unauthenticated, "The customer id in the token is malformed.")
	}
	u, err := s.holder(ctx, in)
	if postgres.IsUnique(err) { // another call was first
		u, err = s.holder(ctx, in)
	}
	if err != nil {
		return nil, id.Session{}, err
	}
	if u.Disabled {
		return nil, id.Session{}, fault.New(fault.Unauthenticated, "The account is disabled.")
	}
	if in.Verified && !u.Verified && (u.Account == in.Email || strings.HasPrefix(u.Account, externalAccount)) {
		if u, err = s.cfg.Admin.change(ctx, u.ID,
			func(up *ent.UserUpdateOne) { up.SetVerifiedAt(s.cfg.Clock.Now()) }); err != nil || u == nil {
			return nil, id.Session{}, fmt.Errorf("verify contact of a user of %s: %w", in.Issuer, err)
		}
	}
	shared, err := s.holderSession(ctx, u, in)
	return u, shared, err
}

// holder returns the user of a token, created or linked when needed.
func (s *Service) holder(ctx context.Context, in Holder) (*User, error) {
	in.Email = s.address(in.Email)
	known, err := s.store.byIdentity(ctx, in.External)
	if known != nil || err != nil {
		return known, err
	}
	if known, err = s.store.byExternalID(ctx, in.Subject); err != nil {
		return nil, err
	}
	if known != nil && known.Role != auth.Customer {
		return nil, fault.New(fault.Unauthenticated, "The account of the token belongs to staff.")
	}
	free := known == nil && in.Email != ""
	if free {
		owner, _, err := s.store.byAccount(ctx, in.Email)
		if err != nil {
			return nil, err
		}
		if owner != nil {
			free = false
			if owner.Verified && owner.Role == auth.Customer && owner.ExternalID == "" {
				known = owner
			}
		}
	}
	return s.link(ctx, in, known, free)
}

// address returns a normalised e-mail address; "" if it is none.
func (s *Service) address(email string) string {
	account, ok := s.store.names.Normalise(email)
	if !ok || !isEmail(account) {
		return ""
	}
	return account
}

// link stores the identity of a token's user; known is nil for a new user, whose account
// is the address if that is free.
func (s *Service) link(ctx context.Context, in Holder, known *User, free bool) (*User, error) {
	return s.cfg.Admin.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		var row *ent.User
		var err error
		if known == nil {
			made := s.store.newUser(NewUser{DisplayName: shownName(in.Name, "Customer@")}, auth.Customer)
			made.Account = externalAccount + made.ID.String()
			if free {
				made.Account, made.DisplayName = in.Email, shownName(in.Name, in.Email)
			}
			if err := insertUser(ctx, tx, made, ""); err != nil {
				return nil, err
			}
			row, err = tx.User.UpdateOneID(made.ID).SetExternalID(in.Subject).Save(ctx)
		} else {
			row, err = tx.User.UpdateOneID(known.ID).Where(user.RoleEQ(user.RoleCUSTOMER)).AddVersion(1).
				SetExternalID(in.Subject).Save(ctx)
		}
		if err != nil {
			return nil, err
		}
		return row, tx.UserIdentity.Create().SetID(id.New[uuid.UUID]()).SetIssuer(in.Issuer).SetSubject(in.Subject).
			SetUserID(row.ID).
			SetCreatedAt(s.cfg.Clock.Now()).Exec(ctx)
	})
}

// holderSession returns the session of a user's tokens from one issuer.
func (s *Service) holderSession(ctx context.Context, u *User, in Holder) (id.Session, error) {
	shared := session.And(session.UserID(u.ID), session.Issuer(in.Issuer))
	ended, err := s.store.db.Ent.Session.Query().Where(shared, session.RevokedAtGTE(in.IssuedAt)).Exist(ctx)
	if err != nil {
		return id.Session{}, fmt.Errorf("read session: %w", err)
	}
	if ended {
		return id.Session{}, fault.New(fault.Unauthenticated, "The session was ended after the token was issued.")
	}
	now := s.cfg.Clock.Now()
	live, err := s.store.db.Ent.Session.Query().Where(shared, session.RevokedAtIsNil(), session.ExpiresAtGT(now)).
		Order(ent.Asc(session.FieldID)).First(ctx)
	switch {
	case ent.IsNotFound(err):
		return s.openHolderSession(ctx, u, in)
	case err != nil:
		return id.Session{}, fmt.Errorf("read session: %w", err)
	case live.ExpiresAt.Before(in.ExpiresAt):
		err = s.store.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Session.Update().Where(session.ID(live.ID), session.RevokedAtIsNil()).SetRotatedAt(now).
				SetExpiresAt(in.ExpiresAt.UTC()).Exec(ctx)
		})
		if err != nil && !errors.Is(err, postgres.ErrCommitUnknown) { // the next token extends it
			return id.Session{}, fmt.Errorf("extend session: %w", err)
		}
	}
	return live.ID, nil
}

// openHolderSession opens a session without a refresh token: nothing hashes to its hash.
func (s *Service) openHolderSession(ctx context.Context, u *User, in Holder) (id.Session, error) {
	now := s.cfg.Clock.Now()
	unused := make([]byte, 32)
	if _, err := rand.Read(unused); err != nil {
		return id.Session{}, fmt.Errorf("session: %w", err)
	}
	row := &ent.Session{ID: id.New[id.Session](), UserID: u.ID, TokenHash: unused, Generation: 1, CreatedAt: now,
		RotatedAt: now, ExpiresAt: in.ExpiresAt.UTC(), Issuer: in.Issuer}
	if err := s.store.write(ctx, row, func(ctx context.Context, tx *ent.Tx) error {
		return insertSession(ctx, tx,
			row)
	}); err != nil {
		return id.Session{}, err
	}
	s.cfg.Directory.cache(ctx, u)
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventSignIn, Actor: u.ID, Subject: u.ID, Detail: "with a token of " +
		in.Issuer})
	return row.ID, nil
}
