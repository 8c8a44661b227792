package transport

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/guard"
	"seckill/internal/fault"
)

// Caller is who a bearer token stands for.
type Caller struct {
	// Context is the context to run the caller's operations in: the one that
	// Authenticate was given, with the principal inside.
	Context context.Context
	// User and Session name the caller to Sockets, which closes by them.
	User, Session uuid.UUID
	// ExpiresAt is when the token lapses; streams end then. Zero = never.
	ExpiresAt time.Time
	// Still is asked again and again while a socket or stream is open. Unauthenticated
	// and Forbidden end it: the caller is no longer who they were. nil = nothing can be
	// taken away before the token lapses.
	Still func(ctx context.Context) error
}

// Options says what NewHandler puts together. Schema, Guard and Sockets are needed;
// the others have defaults.
type Options struct {
	// Schema is gqlgen's generated schema.
	Schema graphql.ExecutableSchema
	// Guard bounds documents and knows the trusted ones.
	Guard *guard.Guard
	// Sockets keeps the open WebSockets and SSE streams; one per process.
	Sockets *Sockets
	// Development turns field suggestions on. Without it, errors about
	// documents do not quote them. Introspection and untrusted documents are
	// the guard's.
	Development bool
	// Authenticate tells who a bearer token stands for. It is not called for
	// requests without a token: those are anonymous. A refused token is a fault
	// of the whole request, never an anonymous one. nil refuses every token.
	Authenticate func(ctx context.Context, token string) (Caller, error)
	// ErrorPresenter turns errors into their public form; by default fault
	// codes are kept and everything else becomes INTERNAL.
	ErrorPresenter graphql.ErrorPresenterFunc
	// Recover turns a panic into an error; by default it is logged with its
	// place and becomes INTERNAL.
	Recover graphql.RecoverFunc
	// Extensions are further gqlgen extensions, around fields, operations or
	// responses. What changes operations before they run is the guard's.
	Extensions []graphql.HandlerExtension
	// MaxBody bounds a request body in bytes; 32 kB by default.
	MaxBody int64
	// Timeout is the longest that a query or mutation may take, subscriptions
	// excepted; 5 s by default.
	Timeout time.Duration
	// KeepAlive is the pause between two comments on a quiet SSE stream; 12 s
	// by default.
	KeepAlive time.Duration
	// Shared are root fields whose answers, asked for by GET without a token, are
	// the same for everybody and may be kept by any cache for a second.
	Shared []string
	// Log receives panics and broken invariants; discarded by default.
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
	if o.KeepAlive == 0 {
		o.KeepAlive = defaultKeepAlive
	}
	if o.ErrorPresenter == nil {
		o.ErrorPresenter = presentFault
	}
	if o.Recover == nil {
		o.Recover = recoverTo(o.Log)
	}
	if o.Authenticate == nil {
		o.Authenticate = func(context.Context, string) (Caller, error) {
			return Caller{}, fault.New(fault.Unauthenticated, "Sign in again.")
		}
	}
	return o
}

// presentFault is the default presenter: what already has a public code passes,
// everything else is told by its fault code alone.
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
