// Package auth implements authentication: principals, access tokens, and revoked
// sessions. A request's context carries its principal and the address of its client.
//
// It owns the signing keys, the format of access tokens (JWT, HS256), the cache of
// verified tokens and the process's copy of revoked sessions. Accounts, passwords and
// refresh tokens belong to package account. Package auth orders the roles; which
// operation needs which role is decided elsewhere.
//
// Verifying a token needs no network call: a verified token is cached until it expires,
// and the end of a session is published to all processes (Revocations). Only the role of
// staff tokens is looked up, because a removed role must stop working within seconds; a
// customer's token has no rights to remove.
package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"seckill/internal/platform/id"
)

// Role is a set of rights. Roles are ordered: each includes the rights of the previous
// ones.
type Role string

// Roles, lowest first.
const (
	Customer Role = "CUSTOMER" // buys
	Operator Role = "OPERATOR" // prepares and watches sales
	Admin    Role = "ADMIN"    // everything, including approval
)

// Valid reports whether the role is one of the constants.
func (r Role) Valid() bool { return r.rank() > 0 }

// AtLeast reports whether r includes the rights of least. It is false if either role is
// unknown.
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

func lower(a, b Role) Role {
	if a.rank() < b.rank() {
		return a
	}
	return b
}

// Principal is an authenticated user, or a service account: another system with a service
// token. It is shared between requests and must not be changed.
type Principal struct {
	UserID    id.User    // of a service account: the id of its token
	SessionID id.Session // likewise
	Role      Role       // "" for a service account: it has the rights of no role
	ExpiresAt time.Time  // when the token expires
	Scopes    []Scope    // rights of a service account; nil for a user
}

// Service reports whether the principal is a service account.
func (p *Principal) Service() bool { return p.Scopes != nil }

// MayUse reports whether a service account has a scope; never for a user.
func (p *Principal) MayUse(scope Scope) bool {
	return slices.ContainsFunc(p.Scopes, func(s Scope) bool { return s.grants(scope) })
}

type principalKey struct{}

// WithPrincipal returns a context that carries the principal.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns the principal, nil without authentication.
func PrincipalFrom(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// Scope is a right of a service token. A scope that writes includes the one that reads.
type Scope string

// Scopes of service tokens.
const (
	CatalogueRead  Scope = "CATALOGUE_READ"
	CatalogueWrite Scope = "CATALOGUE_WRITE"
	SalesRead      Scope = "SALES_READ"
	SalesWrite     Scope = "SALES_WRITE"
	OrdersRead     Scope = "ORDERS_READ"
	OrdersWrite    Scope = "ORDERS_WRITE"
	Exports        Scope = "EXPORTS"
	EventsRead     Scope = "EVENTS_READ"
	UsersRead      Scope = "USERS_READ"
	UsersWrite     Scope = "USERS_WRITE"
)

// Scopes lists every scope.
func Scopes() []Scope {
	return []Scope{CatalogueRead, CatalogueWrite, SalesRead, SalesWrite, OrdersRead, OrdersWrite, Exports, EventsRead,
		UsersRead, UsersWrite}
}

// Valid reports whether the scope is one of the constants.
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// String returns the scope as the command line writes it: catalogue:read.
func (s Scope) String() string { return strings.ToLower(strings.ReplaceAll(string(s), "_", ":")) }

// ParseScope returns the scope with a name of the command line.
func ParseScope(name string) (Scope, bool) {
	for _, s := range Scopes() {
		if s.String() == name {
			return s, true
		}
	}
	return "", false
}

// grants reports whether a token with scope s may do what needs scope needed.
func (s Scope) grants(needed Scope) bool {
	return s == needed || strings.TrimSuffix(string(s), "_WRITE")+"_READ" == string(needed)
}
