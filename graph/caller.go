package graph

import (
	"context"

	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

// shopper returns the caller as one who may buy; nil without a user.
func shopper(ctx context.Context) *auth.Principal {
	if p := auth.PrincipalFrom(ctx); p != nil && !p.Service() {
		return p
	}
	return nil
}

// reads reports whether the caller is an operator, or a service account with a scope.
func reads(ctx context.Context, scope auth.Scope) bool {
	p := auth.PrincipalFrom(ctx)
	return p != nil && permits(p, auth.Operator, &scope)
}

// callerID returns the user id of the caller; Nil = no user.
func callerID(ctx context.Context) id.User {
	if p := shopper(ctx); p != nil {
		return p.UserID
	}
	return id.User{}
}

// browserID returns the id of the caller's browser; "" = unknown.
func browserID(ctx context.Context) string { return account.DeviceID(auth.CookieFrom(ctx).Device()) }

// isOperator reports whether the caller has at least the operator role.
func isOperator(ctx context.Context) bool {
	p := auth.PrincipalFrom(ctx)
	return p != nil && p.Role.AtLeast(auth.Operator)
}

// actor returns the caller as the actor of an operator action.
func actor(ctx context.Context) sale.Actor {
	p := auth.PrincipalFrom(ctx)
	if p == nil {
		return sale.Actor{}
	}
	if p.Service() { // its scope was checked with the field
		return sale.Actor{ID: p.UserID, Role: auth.Operator}
	}
	return sale.Actor{ID: p.UserID, Role: p.Role}
}
