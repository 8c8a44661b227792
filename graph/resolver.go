// Package graph implements the GraphQL API. Resolvers are adapters: authorise, call one
// domain function, build the payload, and return its error. There is no SQL, Redis,
// transaction or goroutine here; the field middleware turns refusals into userErrors
// (payloads.go).
//
// Files: gqlgen keeps the resolvers of a schema file in *.resolvers.go; *_convert.go turns
// domain values into types of the API and inputs into those of a domain, *_access.go decides
// which rows the caller may see, and caller.go who the caller is.
package graph

import (
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/access"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/checkout"
	"seckill/internal/buy/member"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/refusal"
	"seckill/internal/buy/salestats"
	"seckill/internal/buy/storefront"
	"seckill/internal/buy/waitlist"
	"seckill/internal/gate/audit"
	"seckill/internal/identity/account"
	"seckill/internal/identity/oidc"
	"seckill/internal/identity/recipient"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/receipt"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/staff/inbox"
	"seckill/internal/staff/operator"
	"seckill/internal/staff/report"
)

// Resolver holds the domain services behind the API.
type Resolver struct {
	Accounts    *account.Service
	Security    *account.SecurityLog // records who reads personal data; nil = not recorded
	Captchas    *captcha.Service
	Shop        *storefront.Storefront
	Checkout    *checkout.Checkout
	Members     *member.Service
	Codes       access.Codes
	Queue       *queue.Service
	Waitlist    *waitlist.Service
	Orders      *order.Store
	Addresses   *recipient.Book
	Fulfilments order.Fulfilments
	Corrections order.Corrections
	Seller      receipt.Seller // whom receipts name
	Acceptances *acceptance.Signer
	SealedLog   audit.Seals
	Metadata    order.MetadataStore
	Payments    *payment.Service
	Operator    *operator.Service
	Letters     *orderintake.DeadLetters
	Positions   *orderintake.QueuePositions
	Figures     *salestats.Reader
	Counts      *salestats.Recorder
	Refusals    *refusal.Log
	Feed        *salestats.Feed
	Reports     report.Source
	Webhooks    *webhook.Service
	Notices     *notice.Service
	Waiting     *inbox.Inbox
	Tokens      *servicetoken.Service // of other systems

	Providers *oidc.Service // with whose accounts users sign in; nil = there are none
	Limits    *ratelimit.Limiter
	Absences  *ratelimit.Absences // nil = limits are off
	// RateLimits replace the @rateLimit of the operations that they name.
	RateLimits map[string]ratelimit.Policy
	Server     ServerInfo
}

// ServerInfo describes this server.
type ServerInfo struct {
	Version string
	Commit  string
	// Process reports whether the server is stopping: a *server.Readiness.
	Process  interface{ Draining() bool }
	Payments bool // whether a payment provider is configured
	// PublicURL is the address of the shop; "" = none is known.
	PublicURL string
	// ErrorReference is the address of the page of error codes.
	ErrorReference string
}
