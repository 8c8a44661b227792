package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/generated"
	"seckill/graph/model"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// Directives returns the run-time directives of the schema.
func (r *Resolver) Directives() generated.DirectiveRoot {
	return generated.DirectiveRoot{Auth: authorise, RateLimit: r.limit}
}

// limit rate-limits an operation; a sale can override the limit. Calls of placeOrder are
// counted by package checkout, in memory.
func (r *Resolver) limit(ctx context.Context, _ any, next graphql.Resolver, burst int, perSecond float64) (any, error) {
	fc := graphql.GetFieldContext(ctx)
	field := fc.Field.Name
	if field == "placeOrder" || barred(ctx, fc) {
		return next(ctx)
	}
	policy, ok := r.RateLimits[field]
	if !ok {
		policy = ratelimit.Policy{Name: field, Burst: burst, PerSecond: perSecond}
	}
	d, err := r.count(ctx, policy)
	if err != nil {
		return nil, err
	}
	if refusal := d.Refusal(); refusal != nil {
		return nil, refusal
	}
	if p := auth.PrincipalFrom(ctx); p != nil && slices.Contains(crowded, field) {
		if refusal := r.Limits.AllowShare(field, auth.ClientAddr(ctx), p.UserID).Refusal(); refusal != nil {
			return nil, refusal
		}
	}
	return next(ctx)
}

// crowded are the operations of the crowd before a gate. The accounts of one network have shares in
// them, because a new account costs a script little, and a single call of a user costs Redis nothing.
var crowded = []string{"createCaptcha", "issueSeckillPath", "enterQueue", "joinWaitlist", "enterDraw", "redeemAccessCode"}

// CheckRateLimits returns an error for a limit of an operation that has none in the
// schema.
func CheckRateLimits(schema *ast.Schema, limits map[string]ratelimit.Policy) error {
	var limited []string
	for _, f := range schema.Mutation.Fields {
		if f.Directives.ForName("rateLimit") != nil {
			limited = append(limited, f.Name)
		}
	}
	for name := range limits {
		if !slices.Contains(limited, name) {
			return fmt.Errorf("%q has no rate limit: choose among %s", name, strings.Join(limited, ", "))
		}
	}
	return nil
}

// count takes a token from the session of a valid refresh token, else from a known device,
// else from the user, else from the address. If refreshes and sign-ins of known devices
// were counted by address, users behind one address would block each other.
func (r *Resolver) count(ctx context.Context, policy ratelimit.Policy) (ratelimit.Decision, error) {
	var subject ratelimit.Subject
	known := false
	switch input := graphql.GetFieldContext(ctx).Args["input"].(type) {
	case model.RefreshSessionInput:
		subject, known = r.Accounts.Refresher(shownToken(ctx, input))
	case model.LoginInput:
		subject, known = r.Accounts.KnownDevice(input.Account, shownDevice(ctx, input))
	}
	if known {
		return r.Limits.Allow(ctx, policy, subject)
	}
	p := auth.PrincipalFrom(ctx)
	if p == nil {
		return r.Limits.AllowAddr(ctx, policy, auth.ClientAddr(ctx))
	}
	subject = ratelimit.User(p.UserID)
	if v := r.saleAsked(ctx); v != nil && v.Switches.Limits() { // operations on a sale require a user
		subject = subject.In(v.ID)
		policy.Burst, policy.PerSecond = v.Switches.Limit(policy.Burst, policy.PerSecond)
	}
	if slices.Contains(crowded, graphql.GetFieldContext(ctx).Field.Name) {
		return r.Limits.AllowLater(policy, subject), nil
	}
	return r.Limits.Allow(ctx, policy, subject)
}

// shownToken returns the refresh token of a call, from its input or else its cookie.
func shownToken(ctx context.Context, input model.RefreshSessionInput) string {
	if token := deref(input.RefreshToken); token != "" {
		return token
	}
	return auth.CookieFrom(ctx).Sent()
}

// itemAsked returns the item that an operation on a sale names, zero for none.
func itemAsked(fc *graphql.FieldContext) id.Item {
	var text string
	switch input := fc.Args["input"].(type) {
	case model.IssueSeckillPathInput:
		text = input.ItemID
	case model.EnterQueueInput:
		text = input.ItemID
	case model.JoinWaitlistInput:
		text = input.ItemID
	}
	itemID, err := id.ParseItem(text)
	if err != nil {
		return id.Item{}
	}
	return itemID
}

// saleAsked returns the sale of an operation on a sale; nil for other operations and for
// unknown items.
func (r *Resolver) saleAsked(ctx context.Context) *sale.Sale {
	itemID := itemAsked(graphql.GetFieldContext(ctx))
	if itemID.IsZero() {
		return nil
	}
	snap, err := r.Shop.Catalog(ctx)
	if err != nil {
		return nil // the operation itself reports the error
	}
	item := snap.Item(itemID)
	if item == nil {
		return nil
	}
	return snap.Sale(item.SaleID)
}

// authorise resolves the field when the principal is a user with at least the role, or a
// service account with the scope.
func authorise(ctx context.Context, _ any, next graphql.Resolver, role auth.Role, scope *auth.Scope) (any, error) {
	p := auth.PrincipalFrom(ctx)
	switch {
	case p == nil:
		return nil, fault.New(fault.Unauthenticated, "Please sign in first.")
	case permits(p, role, scope):
		return next(ctx)
	case p.Service() && scope != nil:
		return nil, fault.New(fault.Forbidden, "The service token lacks the scope "+string(*scope)+".")
	case p.Service():
		return nil, fault.New(fault.Forbidden, "Service tokens may not do this.")
	}
	return nil, fault.New(fault.Forbidden, "Your role may not do this.")
}

// permits reports whether a principal may read a field of the role and scope; a nil scope
// means that no service account may.
func permits(p *auth.Principal, role auth.Role, scope *auth.Scope) bool {
	if p.Service() {
		return scope != nil && p.MayUse(*scope)
	}
	return p.Role.AtLeast(role)
}

// barred reports whether the principal may not read a field. Other directives and
// middleware then leave the error to the field's authorisation directive, so that it is
// reported before limits and constraints.
func barred(ctx context.Context, fc *graphql.FieldContext) bool {
	q := requirementOf(fc.Field.Definition.Directives)
	if q == nil {
		return false
	}
	p := auth.PrincipalFrom(ctx)
	return p == nil || !permits(p, q.role, unlessZero(q.scope))
}
