// Package servicetoken owns the tokens with which other systems use the API: their
// scopes, their expiry, and their last use.
//
// A token is 32 random bytes and is shown once. The database has its SHA-256: the token is
// random, so a slow hash would add nothing. Every process has a copy of all tokens, which
// is at most a quarter of a second old, so that guessed tokens cost no query. It does not
// own what a scope permits: the directives of the schema do.
package servicetoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill/ent"
	"seckill/ent/servicetoken"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

const (
	// prefix starts a token, so that scanners and this package recognise it.
	prefix = "skst_"
	// secretBytes is the length of the random part.
	secretBytes = 32
	// maxTokens bounds the tokens that are not revoked: each process has a copy of them.
	maxTokens = 100
	// maxName bounds a name, in characters.
	maxName = 80
	// MaxLife bounds the lifetime of a token: a forgotten one ends after a year.
	MaxLife = 366 * 24 * time.Hour
	// DefaultLife is the lifetime of a token without a stated one.
	DefaultLife = 90 * 24 * time.Hour
	// copyFor is how long a copy of the tokens is used: a revoked token works no longer than
	// that, also when Redis is down.
	copyFor = 250 * time.Millisecond
	// usedEvery is the least interval between two writes of the last use of a token.
	usedEvery = time.Minute
	// WriteTimeout is the timeout of a write of the last use.
	WriteTimeout = 2 * time.Second
)

// Token is a token without its secret.
type Token struct {
	ID         id.ServiceToken
	Name       string
	Scopes     []auth.Scope
	CreatedBy  *id.User // nil = the command line
	CreatedAt  time.Time
	ExpiresAt  time.Time
	LastUsedAt *time.Time // at most a minute old; nil = never used
}

// Config holds the dependencies of a Service.
type Config struct {
	DB *postgres.DB
	// Revocations end the sockets and streams of a token in all processes; may be nil.
	Revocations *auth.Revocations
	Security    Security // nil = changes are not recorded
	// Outbox writes events while a token may read them; nil = none does.
	Outbox interface {
		Added(ctx context.Context) // after a token was added
		Forget()                   // after another change
	}
	Timeout time.Duration // of a write of the last use; 0 = WriteTimeout
	Clock   clock.Clock
	Log     *slog.Logger
}

// Security records the changes of tokens; account.SecurityLog implements it.
type Security interface {
	TokenChanged(ctx context.Context, by id.User, what string)
}

// Service creates, verifies and revokes tokens. It is safe for concurrent use.
type Service struct {
	cfg Config

	mu      sync.Mutex
	known   map[[sha256.Size]byte]*known // guarded by mu; all tokens that are not revoked
	readAt  time.Time                    // guarded by mu; when known was read; zero = never
	reading chan struct{}                // guarded by mu; closed when the present read ends; nil = none
}

// known is a token in the copy of a process.
type known struct {
	principal *auth.Principal
	lastUsed  time.Time // guarded by mu of the service
}

// New returns a Service.
func New(cfg Config) *Service {
	return &Service{cfg: cfg}
}

// Is reports whether a bearer token has the form of a service token.
func Is(token string) bool { return strings.HasPrefix(token, prefix) }

// Input describes a new token.
type Input struct {
	Name   string
	Scopes []auth.Scope
	Life   time.Duration // 0 = DefaultLife
}

// Check returns all faults of the input.
func (in Input) Check() error { return in.clean() }

// clean sets the defaults and returns all faults.
func (in *Input) clean() error {
	in.Name = typed.Line(in.Name)
	if in.Life == 0 {
		in.Life = DefaultLife
	}
	in.Scopes = slices.Compact(slices.Sorted(slices.Values(in.Scopes)))
	var name, scopes, life error
	if rule := fault.Line(in.Name, 1, maxName); rule != (fault.Rule{}) {
		name = badField("name", rule)
	}
	switch {
	case len(in.Scopes) == 0:
		scopes = badField("scopes", fault.AScope)
	case slices.ContainsFunc(in.Scopes, func(s auth.Scope) bool { return !s.Valid() }):
		scopes = badField("scopes", fault.Rule{Code: "known scopes"})
	}
	if in.Life < time.Minute || in.Life > MaxLife {
		life = badField("expiresInDays", fault.Rule{Code: "1 to 366 days"})
	}
	return fault.All(name, scopes, life)
}

func badField(name string, rule fault.Rule) error {
	return fault.BadField{At: []string{name}, Rule: rule}
}

// Create makes a token on behalf of by (Nil = the command line) and returns it with its
// secret form, which is shown only here. Other processes accept it within a second; one
// that reads events is returned when they write them.
// Refusals: INVALID_INPUT, and CONFLICT when there are 100 already.
func (s *Service) Create(ctx context.Context, by id.User, in Input) (*Token, string, error) {
	if err := in.clean(); err != nil {
		return nil, "", err
	}
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, "", fmt.Errorf("service token: %w", err)
	}
	token := prefix + base64.RawURLEncoding.EncodeToString(secret)
	hash, now := sha256.Sum256([]byte(token)), s.now()
	var row *ent.ServiceToken
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.ServiceToken.Query().Where(servicetoken.RevokedAtIsNil()).Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxTokens {
			return fault.Refused{Why: fault.Conflict}
		}
		create := tx.ServiceToken.Create().SetID(id.New[id.ServiceToken]()).SetName(in.Name).SetScopes(joinScopes(in.Scopes)).
			SetHash(hash[:]).
			SetCreatedAt(now).SetExpiresAt(now.Add(in.Life))
		if !by.IsZero() {
			create.SetCreatedBy(by)
		}
		row, err = create.Save(ctx)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("create service token: %w", err)
	}
	if s.cfg.Outbox != nil && slices.Contains(in.Scopes, auth.EventsRead) {
		s.cfg.Outbox.Added(ctx)
	}
	s.changed(ctx, by, "created "+row.ID.Public()+" with "+row.Scopes)
	return fromRow(row), token, nil
}

// changed makes this process read the tokens again, and who reads events, and records
// the change.
func (s *Service) changed(ctx context.Context, by id.User, what string) {
	s.forget()
	if s.cfg.Outbox != nil {
		s.cfg.Outbox.Forget()
	}
	if s.cfg.Security != nil {
		s.cfg.Security.TokenChanged(ctx, by, what)
	}
}

// Revoke ends a token in all processes within a second, with its sockets and streams.
// Refusal: NOT_FOUND.
func (s *Service) Revoke(ctx context.Context, by id.User, token id.ServiceToken) (*Token, error) {
	var row *ent.ServiceToken
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.ServiceToken.Update().Where(servicetoken.ID(token), servicetoken.RevokedAtIsNil()).SetRevokedAt(s.now()).
			Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Refused{Why: fault.Unknown, At: []string{"serviceTokenId"}}
		}
		row, err = tx.ServiceToken.Get(ctx, token)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revoke service token: %w", err)
	}
	s.changed(ctx, by, "revoked "+token.Public())
	if s.cfg.Revocations == nil {
		return fromRow(row), nil
	}
	if err := s.cfg.Revocations.Revoke(ctx, id.Session(token)); err != nil {
		return nil, fmt.Errorf("the service token is revoked; its streams end later: %w", err)
	}
	return fromRow(row), nil
}

// List returns the tokens that are not revoked, oldest first; at most 100.
func (s *Service) List(ctx context.Context) ([]*Token, error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, err
	}
	return collect.Map(rows, fromRow), nil
}

// CreatedBy returns the ids of all tokens that a user created, also revoked ones: what
// they wrote counts as written by the user.
func (s *Service) CreatedBy(ctx context.Context, user id.User) ([]id.ServiceToken, error) {
	tokens, err := s.cfg.DB.Ent.ServiceToken.Query().Where(servicetoken.CreatedBy(user)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read service tokens: %w", err)
	}
	return tokens, nil
}

// EventsAreRead returns a function that reports whether a token may read the events for
// other systems. An expired token counts while the events of its last day are kept: a new
// one continues at the same cursor. keep is how long events are kept.
func EventsAreRead(c clock.Clock, keep time.Duration) func(context.Context, *ent.Tx) (bool, error) {
	return func(ctx context.Context, tx *ent.Tx) (bool, error) {
		return tx.ServiceToken.Query().Where(
			servicetoken.RevokedAtIsNil(), servicetoken.ScopesContains(string(auth.EventsRead)),
			servicetoken.ExpiresAtGT(c.Now().Add(-keep)),
		).Exist(ctx)
	}
}

func (s *Service) rows(ctx context.Context) ([]*ent.ServiceToken, error) {
	rows, err := s.cfg.DB.Ent.ServiceToken.Query().Where(servicetoken.RevokedAtIsNil()).
		Order(ent.Asc(servicetoken.FieldID)).Limit(maxTokens).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read service tokens: %w", err)
	}
	return rows, nil
}

// now returns the time of an operation, in the precision of the database.
func (s *Service) now() time.Time { return s.cfg.Clock.Now().UTC().Truncate(time.Microsecond) }

func fromRow(row *ent.ServiceToken) *Token {
	t := &Token{
		ID: row.ID, Name: row.Name, Scopes: splitScopes(row.Scopes), CreatedBy: row.CreatedBy,
		CreatedAt: row.CreatedAt.UTC(), ExpiresAt: row.ExpiresAt.UTC(),
	}
	if row.LastUsedAt != nil {
		used := row.LastUsedAt.UTC()
		t.LastUsedAt = &used
	}
	return t
}

func joinScopes(scopes []auth.Scope) string {
	words := collect.Map(scopes, func(scope auth.Scope) string { return string(scope) })
	return strings.Join(words, ",")
}

func splitScopes(column string) []auth.Scope {
	scopes := []auth.Scope{}
	for word := range strings.SplitSeq(column, ",") {
		scopes = append(scopes, auth.Scope(word))
	}
	return scopes
}
