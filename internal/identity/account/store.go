package account

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Store reads and writes accounts and sessions in Postgres.
type Store struct {
	db    *postgres.DB
	clock clock.Clock
	names Names
}

// NewStore returns a store of accounts with names.
func NewStore(db *postgres.DB, c clock.Clock, names Names) *Store {
	return &Store{db: db, clock: c, names: names}
}

// Create creates an account with any role, without captcha or limits, for tools. The
// refusal is BadField or ACCOUNT_TAKEN.
func (s *Store) Create(ctx context.Context, in NewUser, role auth.Role) (*User, error) {
	in, err := s.names.clean(in)
	if err != nil {
		return nil, err
	}
	if !role.Valid() {
		return nil, badField("role", fault.Rule{Code: "known role"})
	}
	hash, err := HashPassword(in.Password)
	if err != nil {
		return nil, err
	}
	made := s.newUser(in, role)
	err = s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return insertUser(ctx, tx, made, hash) })
	if postgres.IsUnique(err) {
		return nil, refused(fault.AccountTaken, "account")
	}
	if err != nil {
		return nil, fmt.Errorf("create account: %w", err)
	}
	return made, nil
}

func (s *Store) newUser(in NewUser, role auth.Role) *User {
	return &User{
		ID: id.New[id.User](), Account: in.Account, DisplayName: in.DisplayName, Role: role, Version: 1,
		CreatedAt: s.clock.Now(),
	}
}

func insertUser(ctx context.Context, tx *ent.Tx, u *User, hash string) error {
	create := tx.User.Create().SetID(u.ID).SetAccount(u.Account).SetDisplayName(u.DisplayName).SetPasswordHash(hash).
		SetRole(user.Role(u.Role)).SetVersion(u.Version).SetCreatedAt(u.CreatedAt)
	if u.Verified {
		create.SetVerifiedAt(u.CreatedAt)
	}
	return create.Exec(ctx)
}

// User returns a user; nil if there is none.
func (s *Store) User(ctx context.Context, id id.User) (*User, error) {
	row, err := s.db.Ent.User.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	return toUser(row), nil
}

// users returns those of the users that exist, in any order.
func (s *Store) users(ctx context.Context, ids []id.User) ([]*User, error) {
	rows, err := s.db.Ent.User.Query().Where(user.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	return collect.Map(rows, toUser), nil
}

// byAccount returns a user and the password hash; nil and "" if there is none.
func (s *Store) byAccount(ctx context.Context, account string) (*User, string, error) {
	row, err := s.db.Ent.User.Query().Where(user.Account(account)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read account: %w", err)
	}
	return toUser(row), row.PasswordHash, nil
}

// update runs a transaction that changes a user and returns the user as changed; nil if
// there is none.
func (s *Store) update(ctx context.Context, do func(ctx context.Context, tx *ent.Tx) (*ent.User, error)) (*User,
	error) {
	var row *ent.User
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		row, err = do(ctx, tx)
		return err
	})
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if errors.Is(err, postgres.ErrCommitUnknown) {
		return nil, fault.Wrap(fault.Unavailable, "It is unknown whether the user was changed. Please check, and try again.",
			err)
	}
	if err != nil {
		return nil, fmt.Errorf("change user: %w", err)
	}
	return toUser(row), nil
}

// setHash replaces a hash by one with the current parameters, unless the password has
// changed.
func (s *Store) setHash(ctx context.Context, id id.User, old, hash string) error {
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.User.Update().Where(user.ID(id), user.PasswordHash(old)).SetPasswordHash(hash).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("renew password hash: %w", err)
	}
	return nil
}

func toUser(row *ent.User) *User {
	return &User{
		ID: row.ID, Account: row.Account, DisplayName: row.DisplayName,
		Role: auth.Role(row.Role), Version: row.Version, CreatedAt: row.CreatedAt.UTC(), Disabled: row.DisabledAt != nil,
		TOTP: row.TotpSince != nil, Verified: row.VerifiedAt != nil, ExternalID: externalOf(row.ExternalID),
		Claims: parseClaims(row.Claims),
	}
}

func externalOf(externalID *string) string {
	if externalID == nil {
		return ""
	}
	return *externalID
}
