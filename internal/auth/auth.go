// Package auth says who is asking: principals, access tokens, and which sessions
// have been ended.
//
// It owns the signing keys, the format of access tokens (JWT, HS256), the cache
// of verified tokens and the process's view of revoked sessions. It does not own
// accounts, passwords or refresh tokens (package account), and decides nothing
// about what a principal may do beyond ordering the roles.
//
// A principal costs no round trip: a token that was verified is remembered until
// it lapses, and the end of a session is pushed to every process (Revocations).
// Only staff tokens are looked up, because a role that was taken away must stop
// working within seconds; a customer's token grants nothing that could be taken.
package auth

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Role is what a person may do. Roles are ordered: each may do all that the
// roles before it may.
type Role string

// Roles, lowest first.
const (
	Customer Role = "CUSTOMER" // buys
	Operator Role = "OPERATOR" // prepares and watches sales
	Admin    Role = "ADMIN"    // everything, approval included
)

// Valid says whether the role is one of those above.
func (r Role) Valid() bool { return r.rank() > 0 }

// AtLeast says whether r may do all that least may. An unknown role may nothing,
// and nobody may what an unknown role is asked for.
func (r Role) AtLeast(least Role) bool {
	return r.Valid() && least.Valid() && r.rank() >= least.rank()
}

func (r Role) rank() int {
	switch r {
	case Customer:
		return 1
	case Operator:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// lower returns the lesser of two roles.
func lower(a, b Role) Role {
	if a.rank() < b.rank() {
		return a
	}
	return b
}

// Principal is a signed-in person. It is shared between requests: never change one.
type Principal struct {
	UserID    uuid.UUID
	SessionID uuid.UUID
	Role      Role
	ExpiresAt time.Time // when the access token lapses
}

type principalKey struct{}

// WithPrincipal returns a context that carries who is asking.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns who is asking, nil when nobody is signed in.
func PrincipalFrom(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}
