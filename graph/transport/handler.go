package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/telemetry"
)

// Handler serves GraphQL requests of all transports on one path.
type Handler struct {
	opts   Options
	exec   *executor.Executor
	fields graphql.FieldMiddleware
	shared sharedPayloads
	bodies *bodies
	served *telemetry.OperationMetrics
}

// NewHandler returns a Handler with an executor on the guard of opts.
func NewHandler(opts Options) *Handler {
	opts = opts.withDefaults()
	exec := executor.New(opts.Schema)
	exec.SetErrorPresenter(opts.ErrorPresenter)
	exec.SetRecoverFunc(opts.Recover)
	exec.SetDisableSuggestion(!opts.Development)
	exec.SetQueryCache(opts.Guard.Documents())
	exec.SetParserTokenLimit(opts.Guard.MaxTokens())
	exec.SetDefaultRulesFn(opts.Guard.Rules)
	exec.Use(opts.Guard)
	for _, e := range opts.Extensions {
		exec.Use(e)
	}
	return &Handler{opts: opts, exec: exec, fields: aroundFields(opts.Extensions),
		shared: sharedPayloads{age: opts.Public.Age},
		bodies: newBodies(opts.MaxBody), served: telemetry.NewOperationMetrics(opts.Registerer)}
}

// aroundFields returns the field middleware of the extensions, the first outermost. A
// single middleware is returned unwrapped: the executor's chain allocates a closure for
// every field of every response.
func aroundFields(extensions []graphql.HandlerExtension) graphql.FieldMiddleware {
	var around graphql.FieldMiddleware
	for _, e := range slices.Backward(extensions) {
		outer, ok := e.(graphql.FieldInterceptor)
		if !ok {
			continue
		}
		inner := around
		if inner == nil {
			around = outer.InterceptField
			continue
		}
		around = func(ctx context.Context, next graphql.Resolver) (any, error) {
			return outer.InterceptField(ctx, func(ctx context.Context) (any, error) { return inner(ctx, next) })
		}
	}
	if around == nil {
		return func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) }
	}
	return around
}

// ServeHTTP selects the transport by method and headers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recovered(w, r)
	if isUpgrade(r) {
		h.serveSocket(w, r) // each of its operations is counted by itself
		return
	}
	defer h.count(r.Context(), time.Now())
	switch {
	case r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")):
		h.refuse(w, r, &badRequest{http.StatusUnsupportedMediaType, "The content type must be application/json."})
	case r.Method == http.MethodPost && isCoded(r.Header.Get("Content-Encoding")):
		w.Header().Set("Accept-Encoding", "identity")
		h.refuse(w, r, &badRequest{http.StatusUnsupportedMediaType, "The request body must not be compressed."})
	case r.Method == http.MethodPost && wantsEvents(r):
		h.serveEvents(w, r, h.readBody)
	case r.Method == http.MethodPost:
		h.servePost(w, r)
	case r.Method == http.MethodGet && wantsEvents(r):
		h.serveEvents(w, r, readURL)
	case r.Method == http.MethodGet:
		h.serveGet(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		h.refuse(w, r, &badRequest{http.StatusMethodNotAllowed, "Use POST."})
	}
}

// count counts the operation of a request that began at a time.
func (h *Handler) count(ctx context.Context, began time.Time) {
	h.served.Observe(telemetry.OperationFrom(ctx), time.Since(began))
}

// isUpgrade ignores offers of other protocols: Java's client offers h2c with every
// request.
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil || name != "application/json" {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// isCoded reports a compressed body. These are refused: small bodies gain nothing, and a
// small compressed body can expand to a large one.
func isCoded(encoding string) bool { return encoding != "" && !strings.EqualFold(encoding, "identity") }

func wantsEvents(r *http.Request) bool { return accepted(r.Header.Get("Accept")) == eventStreamType }

func (h *Handler) readBody(r *http.Request) (*graphql.RawParams, error) {
	text, err := h.bodies.read(r)
	if err != nil {
		return nil, err
	}
	return decodeRequest(text)
}

func readURL(r *http.Request) (*graphql.RawParams, error) { return decodeQueryString(r.URL.RawQuery) }

func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	params, err := h.readBody(r)
	if err != nil {
		h.unreadable(w, r, err)
		return
	}
	h.answer(w, r, params)
}

func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) {
	params, err := readURL(r)
	if err != nil {
		h.unreadable(w, r, err)
		return
	}
	h.answer(w, r, params)
}

// answer runs one operation and writes its result as a single response.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, params *graphql.RawParams) {
	kind := accepted(r.Header.Get("Accept"))
	ctx := r.Context()
	caller, err := h.authenticate(ctx, r.Header.Get("Authorization"))
	if err != nil {
		h.writeFault(withHeaders(ctx, r.Header), w, kind, err)
		return
	}
	params.Headers = r.Header
	limited := withDeadline(caller.Context, h.opts.Timeout)
	defer limited.cancel()
	ctx = limited
	op, refusal := h.prepare(ctx, params)
	if refusal != nil {
		writeRefusal(ctx, w, kind, refusal)
		return
	}
	if bad := h.misplaced(w, r.Method, op); bad != nil {
		h.refuse(w, r, bad)
		return
	}
	responses, opCtx := h.exec.DispatchOperation(ctx, op)
	resp := responses(opCtx)
	if resp == nil && r.Context().Err() == nil {
		h.writeFault(withHeaders(ctx, r.Header), w, kind, errTimeout())
		return
	}
	note(ctx, resp)
	if h.shareable(r, op, resp) {
		writeShared(w, r, kind, resp)
		return
	}
	cost := guard.CostOf(op)
	writeReply(w, kind, statusOf(kind, resp), reply{resp, &cost})
	if limited.Err() == nil { // after a timeout a resolver may have left calls behind
		h.opts.Guard.Release(op)
	}
}

const tookTooLong = "That took too long."

func errTimeout() error { return fault.New(fault.Timeout, tookTooLong) }

// limited sets the timeout of queries and mutations; subscriptions have none.
func (h *Handler) limited(ctx context.Context, op *graphql.OperationContext) (context.Context, context.CancelFunc) {
	if op.Operation.Operation == ast.Subscription {
		return ctx, func() {}
	}
	d := withDeadline(ctx, h.opts.Timeout)
	return d, d.cancel
}

// misplaced returns an error for an operation that cannot have a single response.
func (h *Handler) misplaced(w http.ResponseWriter, method string, op *graphql.OperationContext) *badRequest {
	if op.Operation.Operation == ast.Subscription {
		return &badRequest{http.StatusBadRequest, "Subscriptions need a WebSocket or Accept: text/event-stream."}
	}
	return h.notByGet(w, method, op)
}

const needsPost = "Send this document by POST: GET is for trusted documents, and for development. " +
	"In urql, set preferGetMethod: false."

// notByGet returns an error for an operation that must not be sent by GET, because pages
// of any origin can make a browser send a GET.
func (h *Handler) notByGet(w http.ResponseWriter, method string, op *graphql.OperationContext) *badRequest {
	switch {
	case method != http.MethodGet:
		return nil
	case op.Operation.Operation == ast.Mutation:
		w.Header().Set("Allow", "POST")
		return &badRequest{http.StatusMethodNotAllowed, "Mutations cannot be sent by GET."}
	case !h.opts.Development && !h.opts.Guard.Trusts(op.RawQuery):
		w.Header().Set("Allow", "POST")
		return &badRequest{http.StatusMethodNotAllowed, needsPost}
	}
	return nil
}

// authenticate returns the caller of a request. An empty header is anonymous; anything
// except a valid bearer token is a fault.
func (h *Handler) authenticate(ctx context.Context, header string) (Caller, error) {
	if header == "" {
		return Caller{Context: ctx}, nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return Caller{}, fault.New(fault.Unauthenticated, "The authorization must be a bearer token.")
	}
	caller, err := h.opts.Authenticate(ctx, token)
	if op := telemetry.OperationFrom(ctx); op != nil {
		op.User = caller.User
	}
	return caller, err
}

// prepare parses and validates an operation and checks its limits. refusal is nil when
// the operation may run.
func (h *Handler) prepare(ctx context.Context, params *graphql.RawParams) (op *graphql.OperationContext,
	refusal *graphql.Response) {
	defer func() {
		if v := recover(); v != nil {
			op, refusal = nil, h.faultResponse(ctx, h.opts.Recover(ctx, v))
		}
	}()
	var errs gqlerror.List
	if op = h.opts.Guard.Recall(params); op != nil {
		op.RecoverFunc, op.RootResolverMiddleware = h.opts.Recover, plainRoot
		if err := h.opts.Guard.Charge(ctx, op); err != nil {
			errs = gqlerror.List{err}
		}
	} else {
		op, errs = h.exec.CreateOperationContext(graphql.StartOperationTrace(ctx), params)
		errs = h.charged(ctx, errs)
	}
	if len(errs) > 0 {
		return nil, h.exec.DispatchError(graphql.WithOperationContext(ctx, op), h.public(ctx, errs, params.Variables))
	}
	op.ResolverMiddleware = h.fields
	describe(ctx, op)
	return op, nil
}

// charged charges for a refused document. Unknown hashes, untrusted documents and an
// exhausted budget cost almost nothing to refuse and are free.
func (h *Handler) charged(ctx context.Context, errs gqlerror.List) gqlerror.List {
	if len(errs) == 0 {
		return errs
	}
	switch codeOf(errs[0]) {
	case string(fault.RateLimited), guard.CodeUnknownHash, guard.CodeNoRegistration, guard.CodeNotTrusted:
		return errs
	}
	if spent := h.opts.Guard.ChargeRefused(ctx); spent != nil {
		return gqlerror.List{spent}
	}
	return errs
}

// plainRoot runs a root field without middleware.
func plainRoot(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) }

// withHeaders lets the presenter of an error that comes before or after an operation see
// the language of the reader.
func withHeaders(ctx context.Context, headers http.Header) context.Context {
	if graphql.HasOperationContext(ctx) {
		return ctx
	}
	return graphql.WithOperationContext(ctx, &graphql.OperationContext{Headers: headers})
}

// faultResponse returns the response to a request that failed as a whole.
func (h *Handler) faultResponse(ctx context.Context, err error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{h.opts.ErrorPresenter(ctx, err)}}
}

func (h *Handler) writeFault(ctx context.Context, w http.ResponseWriter, kind mediaType, err error) {
	resp := h.faultResponse(ctx, err)
	note(ctx, resp)
	if codeOf(resp.Errors[0]) == string(fault.Unauthenticated) {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if f := asFault(err); f != nil && f.RetryAfter > 0 {
		retryAfter(w, f.RetryAfter)
	}
	writeResponse(w, kind, statusOf(kind, resp), resp)
}

// retryAfter sets the Retry-After header, in whole seconds.
func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}

// unreadable charges for a request that could not be decoded, and answers it.
func (h *Handler) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	if spent := h.opts.Guard.ChargeRefused(r.Context()); spent != nil {
		writeRefusal(r.Context(), w, accepted(r.Header.Get("Accept")), h.faultResponse(r.Context(), spent))
		return
	}
	h.refuse(w, r, err)
}

// writeRefusal writes the refusal of an operation, with a Retry-After header if it has a
// retry time.
func writeRefusal(ctx context.Context, w http.ResponseWriter, kind mediaType, refusal *graphql.Response) {
	note(ctx, refusal)
	if ms, ok := refusal.Errors[0].Extensions[guard.RetryAfterMs].(int64); ok {
		retryAfter(w, time.Duration(ms)*time.Millisecond)
	}
	writeResponse(w, kind, statusOf(kind, refusal), refusal)
}

// refuse answers a request that could not be read.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	telemetry.OperationFrom(r.Context()).Fail(string(fault.BadInput))
	status, reason := http.StatusBadRequest, "The request is malformed."
	if bad, ok := errors.AsType[*badRequest](err); ok {
		status, reason = bad.status, bad.reason
	}
	writeResponse(w, accepted(r.Header.Get("Accept")), status, h.faultResponse(r.Context(), &gqlerror.Error{
		Message:    reason,
		Extensions: map[string]any{"code": string(fault.BadInput)},
	}))
}

// recovered answers a request whose handler panicked.
func (h *Handler) recovered(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if fault.IsAbort(v) {
		panic(v)
	}
	ctx := withHeaders(r.Context(), r.Header)
	resp := h.faultResponse(ctx, h.opts.Recover(ctx, v))
	note(r.Context(), resp)
	writeResponse(w, accepted(r.Header.Get("Accept")), http.StatusInternalServerError, resp)
}

func recoverTo(log *slog.Logger) graphql.RecoverFunc {
	return func(ctx context.Context, v any) error {
		log.ErrorContext(ctx, "panic", slog.String("panic", fmt.Sprintf("%T", v)),
			slog.String("stack", string(debug.Stack())))
		return fault.New(fault.Internal, "Something went wrong.")
	}
}

// counted counts the panics of requests, also those that generated code catches.
func counted(next graphql.RecoverFunc) graphql.RecoverFunc {
	return func(ctx context.Context, v any) error { return next(ctx, fault.Caught(v, fault.InRequest)) }
}

func asFault(err error) *fault.Error {
	f, _ := errors.AsType[*fault.Error](err)
	return f
}
