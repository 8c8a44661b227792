// Package graph is the GraphQL face of the product. Resolvers are adapters: read
// who asks, call one domain function, build the payload. There is no SQL, no
// Redis, no transaction and no goroutine here; what a domain refuses becomes a
// userError in errors.go, and nowhere else.
package graph

import (
	"context"
	"net/netip"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/guard"
	"seckill/internal/account"
	"seckill/internal/admission/captcha"
	"seckill/internal/admission/queue"
	"seckill/internal/checkout"
	"seckill/internal/operator"
	"seckill/internal/order"
	"seckill/internal/orderintake"
	"seckill/internal/payment"
	"seckill/internal/ratelimit"
	"seckill/internal/report"
	"seckill/internal/salestats"
	"seckill/internal/storefront"
	"seckill/internal/waitlist"
)

// Resolver holds the domains that the API speaks for.
type Resolver struct {
	Accounts *account.Service
	Captchas *captcha.Service
	Store    *storefront.Storefront
	Checkout *checkout.Checkout
	Queue    *queue.Service
	Waitlist *waitlist.Service
	Orders   *order.Store
	Payments *payment.Service
	Operator *operator.Service
	Letters  *orderintake.DeadLetters
	Figures  *salestats.Reader
	Feed     *salestats.Feed
	Reports  report.Source
	Limits   *ratelimit.Limiter
	Addr     func(context.Context) netip.Addr // of the caller
	Cost     func(*graphql.OperationContext) guard.Cost
	Server   ServerInfo
}

// ServerInfo says what this server is.
type ServerInfo struct {
	Version string
	Commit  string
	Ready   func() bool // false while draining
}
