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

// PublicFields returns the fields, by type, whose values depend on the caller only by
// Audience. Events of subscriptions that select no others are marshalled once for all
// callers of an audience.
func PublicFields() map[string][]string {
	return map[string][]string{
		"Subscription": {"saleStatus", "saleStock"},
		"SaleEvent":    {"kind", "sale", "serverTime"},
		"StockEvent":   {"items", "kind", "serverTime"},
		"Sale": {
			"accent", "access", "drawOpensAt", "endsAt", "entriesCloseAt", "id", "items", "limitBy", "mode",
			"nextTransitionAt", "notice", "offerSeconds",
			"paymentWindowSeconds", "phase",
			"private", "purchaseLimit", "requiresAddress", "revision", "rules", "serverTime", "slug", "startsAt", "title",
		},
		"AccessRule":   {"afterSeconds", "from", "kind", "name"},
		"Accent":       {"color", "dark", "light"},
		"AccentShades": {"fill", "press", "text"},
		"Drawing": {
			"drawnAt", "entries", "recordPath", "root", "round", "roundAt", "signature", "signedRoot", "source", "state",
		},
		"SaleItem": {"drawing", "goods", "id", "price", "purchaseLimit", "stock"},
		"Stock":    {"level", "remaining", "revision", "total", "updatedAt"},
		"Goods":    {"createdAt", "description", "id", "imageAlt", "imageUrl", "listPrice", "name"},
		"Money":    {"amount", "currencyCode"},
	}
}

// Audience names the callers for whom the public fields have the same values: who reads
// sales as staff sees hidden stock, and texts are in the caller's language.
func Audience(ctx context.Context) string {
	name := text{"visitors, en", "visitors, zh"}
	if reads(ctx, auth.SalesRead) {
		name = text{"staff, en", "staff, zh"}
	}
	return name.in(ctx)
}
