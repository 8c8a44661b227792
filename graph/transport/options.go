package transport

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/tracing"
)

// Caller is the user of a bearer token.
type Caller struct {
	// Context is the context for the caller's operations: the argument of Authenticate
	// with the principal added.
	Context context.Context
	// User and Session identify the caller in Sockets.
	User    id.User
	Session id.Session
	// ExpiresAt is when the token expires; streams end then. Zero = never.
	ExpiresAt time.Time
	// Recheck is called repeatedly while a socket or stream is open. Unauthenticated and
	// Forbidden end it: the caller no longer has the rights of the token. nil = rights do
	// not change before the token expires.
	Recheck func(ctx context.Context) error
}

// Options configure NewHandler. Schema, Guard and Sockets are required.
type Options struct {
	// Schema is gqlgen's generated schema.
	Schema graphql.ExecutableSchema
	// Guard checks documents and holds the trusted ones.
	Guard *guard.Guard
	// Sockets holds the open WebSockets and SSE streams; one per process.
	Sockets *Sockets
	// Development enables field suggestions and names in errors about documents.
	// Introspection and untrusted documents are configured in Guard.
	Development bool
	// Names reports whether errors about documents and variables name fields and types for
	// a caller without Development; nil = for none.
	Names func(ctx context.Context) bool
	// Authenticate returns the caller of a bearer token. It is not called for requests
	// without a token: those are anonymous. A refused token fails the whole request; it
	// never makes it anonymous. nil refuses every token.
	Authenticate func(ctx context.Context, token string) (Caller, error)
	// ErrorPresenter converts errors to their public form; by default fault codes are
	// kept and all other errors become INTERNAL.
	ErrorPresenter graphql.ErrorPresenterFunc
	// Recover converts a panic into an error; by default it is logged with its position
	// and becomes INTERNAL.
	Recover graphql.RecoverFunc
	// Extensions are additional gqlgen extensions for fields, operations or responses.
	// Only Guard may change operations before they run.
	Extensions []graphql.HandlerExtension
	// MaxBody bounds a request body in bytes; 32 kB by default.
	MaxBody int64
	// Timeout is the timeout of one query or mutation; 5 s by default.
	Timeout time.Duration
	// KeepAlive is the interval of comments on an idle SSE stream; 12 s by default.
	KeepAlive time.Duration
	// Shared lists root fields whose answers to a GET without a token are the same for
	// all users and may be cached for one second.
	Shared []string
	// Public names the results of subscriptions that subscribers may share; none by default.
	Public Public
	// Tracer traces the operations of sockets and the pushes of events; nil = none.
	Tracer *tracing.Tracer
	// Registerer exports the metrics of operations; nil = they are not exported.
	Registerer prometheus.Registerer
	// Log receives the operations of sockets, panics and violated invariants; discarded by
	// default.
	Log *slog.Logger
}

const (
	defaultMaxBody   = 32 << 10 // bytes; the largest document of the shop has 3 kB
	defaultTimeout   = 5 * time.Second
	defaultKeepAlive = 12 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Public.Age == 0 {
		o.Public.Age = sharedPayloadAge
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = defaultKeepAlive
	}
	if o.ErrorPresenter == nil {
		o.ErrorPresenter = presentFault
	}
	if o.Recover == nil {
		o.Recover = recoverTo(o.Log)
	}
	o.Recover = counted(o.Recover)
	if o.Authenticate == nil {
		o.Authenticate = func(context.Context, string) (Caller, error) {
			return Caller{}, fault.New(fault.Unauthenticated, "Sign in again.")
		}
	}
	return o
}

// presentFault is the default presenter: errors with a public code are unchanged, all
// others show only their fault code.
func presentFault(ctx context.Context, err error) *gqlerror.Error {
	presented := graphql.DefaultErrorPresenter(ctx, err)
	if codeOf(presented) != "" {
		return presented
	}
	code, message := fault.CodeOf(err), "Something went wrong."
	if f := asFault(err); f != nil {
		message = f.Message
	} else if errors.Is(err, context.DeadlineExceeded) {
		code, message = fault.Timeout, tookTooLong
	}
	return &gqlerror.Error{
		Message:    message,
		Path:       presented.Path,
		Locations:  presented.Locations,
		Extensions: map[string]any{"code": string(code)},
	}
}
