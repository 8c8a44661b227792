package graph_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph"
	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/graph/model"
	"seckill/graph/transport"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// cancelling answers cancelOrder alone.
type cancelling struct {
	*graph.Resolver

	answer func() (*model.CancelOrderPayload, error)
}

func (c cancelling) Mutation() generated.MutationResolver { return canceller{c.Resolver.Mutation(), c} }

type canceller struct {
	generated.MutationResolver

	of cancelling
}

func (c canceller) CancelOrder(context.Context, model.CancelOrderInput) (*model.CancelOrderPayload, error) {
	return c.of.answer()
}

// A refusal is an error to the resolver and userErrors to the client, beside what the
// payload has already; a fault keeps its place in the list of errors.
func TestARefusedMutationAnswersUserErrorsBesideItsPayload(t *testing.T) {
	t.Parallel()
	orderID := id.New[id.Order]()
	order := func() *model.CancelOrderPayload {
		return &model.CancelOrderPayload{Order: &model.Order{ID: orderID}}
	}
	refusal := fault.Refused{Why: fault.Conflict, At: []string{"orderId"}}
	const refused = `"userErrors":[{"code":"CONFLICT","path":["input","orderId"]}]`
	for name, c := range map[string]struct {
		payload *model.CancelOrderPayload
		err     error
		want    string
	}{
		"success":                 {order(), nil, `{"data":{"cancelOrder":{"order":{"id":"` + orderID.Public() + `"},"userErrors":[]}}`},
		"refusal alone":           {nil, refusal, `{"data":{"cancelOrder":{"order":null,` + refused + `}}`},
		"refusal with the order":  {order(), refusal, `{"data":{"cancelOrder":{"order":{"id":"` + orderID.Public() + `"},` + refused + `}}`},
		"refusal with its chain":  {order(), fmt.Errorf("cancel: %w", refusal), `{"data":{"cancelOrder":{"order":{"id":"` + orderID.Public() + `"},` + refused + `}}`},
		"fault":                   {order(), fault.New(fault.Unavailable, "later"), `"code":"UNAVAILABLE"`},
		"fault around a refusal":  {order(), fault.Wrap(fault.Unavailable, "later", refusal), `"code":"UNAVAILABLE"`},
		"fault beside a refusal":  {order(), errors.Join(refusal, fault.New(fault.Timeout, "late")), `"code":"TIMEOUT"`},
		"wait of a look-up":       {nil, &fault.Error{Code: fault.RateLimited}, `{"data":{"cancelOrder":{"order":null,"userErrors":[{"code":"RATE_LIMITED","path":null}]}}`},
		"unknown to a look-up":    {nil, fault.New(fault.NotFound, "none"), `{"data":{"cancelOrder":{"order":null,"userErrors":[{"code":"NOT_FOUND","path":null}]}}`},
		"no error and no payload": {nil, nil, `{"data":{"cancelOrder":null}`},
	} {
		got := cancelled(t, func() (*model.CancelOrderPayload, error) { return c.payload, c.err }, nil)
		if !strings.Contains(got, c.want) || strings.Contains(got, `"errors"`) == strings.Contains(c.want, "data") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A mutation has one channel for waits: also that of the request budget is in its payload.
func TestASpentBudgetIsAUserErrorOfAMutation(t *testing.T) {
	t.Parallel()
	ran := func() (*model.CancelOrderPayload, error) {
		t.Error("the mutation ran")
		return nil, nil
	}
	got := cancelled(t, ran, func(_ context.Context, cost int64) (guard.Budget, error) {
		if cost >= 100 { // of reading the document, before it is known to be a mutation
			return guard.Budget{}, nil
		}
		return guard.Budget{}, &fault.Error{Code: fault.RateLimited, RetryAfter: time.Second}
	})
	if want := `{"data":{"cancelOrder":{"order":null,"userErrors":[{"code":"RATE_LIMITED","path":null}]}}`; !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

// cancelled returns the answer to a cancelOrder with a resolver and a budget; nil = without one.
func cancelled(t *testing.T, do func() (*model.CancelOrderPayload, error),
	spend func(context.Context, int64) (guard.Budget, error)) string {
	t.Helper()
	resolver := &graph.Resolver{}
	exec := generated.NewExecutableSchema(generated.Config{
		Resolvers:  cancelling{resolver, do},
		Directives: generated.DirectiveRoot{Auth: resolver.Directives().Auth, RateLimit: unlimited},
	})
	g, err := guard.New(guard.Options{Schema: exec.Schema(), Spend: spend})
	if err != nil {
		t.Fatal(err)
	}
	h := transport.NewHandler(transport.Options{
		Schema: exec, Guard: g, Sockets: transport.NewSockets(transport.SocketOptions{}),
		Extensions:     []graphql.HandlerExtension{graph.NewConstraints(exec.Schema(), resolver)},
		ErrorPresenter: graph.Errors{Log: slog.New(slog.DiscardHandler)}.Present,
	})
	body := `{"query":"mutation { cancelOrder(input: {orderId: \"order_1\"}) { order { id } userErrors { code path } } }"}`
	req := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	h.ServeHTTP(out, req.WithContext(auth.WithPrincipal(req.Context(), &auth.Principal{Role: auth.Customer})))
	return strings.TrimSpace(out.Body.String())
}

func unlimited(ctx context.Context, _ any, next graphql.Resolver, _ int, _ float64) (any, error) {
	return next(ctx)
}
