// Package baseline holds the baseline servers of the benchmark: the floor on net/http, and
// the product's own edge with resolvers that do nothing.
package baseline

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph"
	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/graph/model"
	"seckill/graph/transport"
	"seckill/internal/app/server"
	"seckill/internal/buy/order"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/telemetry"
)

// Place resolves placeOrder.
type Place func(ctx context.Context, in model.PlaceOrderInput) (*model.PlaceOrderPayload, error)

// Watch resolves saleStock.
type Watch func(ctx context.Context, saleID string) (<-chan *model.StockEvent, error)

// root replaces three of the product's resolvers: placeOrder, saleStock and the stock of an
// item.
type root struct {
	*graph.Resolver
	place Place
	watch Watch
}

type mutations struct {
	generated.MutationResolver
	place Place
}

type subscriptions struct {
	generated.SubscriptionResolver
	watch Watch
}

// Mutation returns the resolvers of mutations.
func (r root) Mutation() generated.MutationResolver {
	return mutations{r.Resolver.Mutation(), r.place}
}

// Subscription returns the resolvers of subscriptions.
func (r root) Subscription() generated.SubscriptionResolver {
	return subscriptions{r.Resolver.Subscription(), r.watch}
}

// SaleItem returns the resolvers of items.
func (r root) SaleItem() generated.SaleItemResolver { return items{r.Resolver.SaleItem()} }

type items struct{ generated.SaleItemResolver }

// Stock returns what the event carries.
func (items) Stock(_ context.Context, item *model.SaleItem) (*model.Stock, error) {
	return &model.Stock{Level: storefront.Limited, Remaining: &item.Source.Available, Revision: int(item.Source.Revision),
		Total: &item.Source.Total}, nil
}

// PlaceOrder is the measured mutation.
func (m mutations) PlaceOrder(ctx context.Context, in model.PlaceOrderInput) (*model.PlaceOrderPayload, error) {
	return m.place(ctx, in)
}

// SaleStock is the measured subscription.
func (s subscriptions) SaleStock(ctx context.Context, id string) (<-chan *model.StockEvent, error) {
	return s.watch(ctx, id)
}

func resolver() *graph.Resolver {
	return &graph.Resolver{}
}

// Schema returns the product's schema with these resolvers.
func Schema(place Place, watch Watch) graphql.ExecutableSchema {
	r := resolver()
	return generated.NewExecutableSchema(generated.Config{
		Resolvers: root{r, place, watch}, Directives: r.Directives(),
	})
}

// Noop is a placeOrder resolver without a side effect.
func Noop(context.Context, model.PlaceOrderInput) (*model.PlaceOrderPayload, error) {
	return &model.PlaceOrderPayload{
		OrderTask:  &model.OrderTask{ID: NoTask, Status: order.Submitted},
		UserErrors: []model.UserError{},
	}, nil
}

// NoTask is the id of a task that does not exist.
var NoTask = id.New[id.Task]()

// Edge returns the product's public handler with all of its middleware around the schema
// with these resolvers. tokens nil = no authentication.
func Edge(place Place, watch Watch, tokens *auth.Tokens, log *slog.Logger) (http.Handler, error) {
	schema := Schema(place, watch)
	g, err := guard.New(guard.Options{Schema: schema.Schema(), Introspection: true})
	if err != nil {
		return nil, err
	}
	errs := graph.Errors{Log: log}
	h := transport.NewHandler(transport.Options{
		Schema: schema, Guard: g, Development: true, Log: log,
		Sockets:      transport.NewSockets(transport.SocketOptions{MaxPerUser: 1000}),
		Authenticate: authenticate(tokens), ErrorPresenter: errs.Present, Recover: errs.Recover,
		Public:     transport.Public{Fields: graph.PublicFields(), Audience: graph.Audience},
		Extensions: []graphql.HandlerExtension{graph.NewConstraints(schema.Schema(), resolver())},
	})
	return server.NewPublic(server.PublicOptions{GraphQL: h, Log: log, Registerer: telemetry.NewRegistry()})
}

// anonymous is the principal of requests without authentication: the schema requires one
// for placeOrder.
var anonymous = auth.Principal{Role: auth.Customer}

func authenticate(tokens *auth.Tokens) func(context.Context, string) (transport.Caller, error) {
	return func(ctx context.Context, token string) (transport.Caller, error) {
		if tokens == nil {
			return transport.Caller{Context: auth.WithPrincipal(ctx, &anonymous)}, nil
		}
		p, err := tokens.Verify(ctx, token)
		if err != nil {
			return transport.Caller{}, err
		}
		return transport.Caller{Context: auth.WithPrincipal(ctx, p), User: p.UserID, Session: p.SessionID,
			ExpiresAt: p.ExpiresAt}, nil
	}
}

// Tokens verifies the tokens of an installation. Its sessions never end.
func Tokens(keys auth.Keys) (*auth.Tokens, error) {
	return auth.NewTokens(auth.TokensConfig{
		Keys: keys, Clock: clock.System{}, Sessions: customers{}, Roles: customers{},
	})
}

// customers are users whose sessions never end.
type customers struct{}

// Revoked implements auth.Sessions.
func (customers) Revoked(id.Session) bool { return false }

// Role implements auth.Roles.
func (customers) Role(context.Context, id.User) (auth.Role, error) { return auth.Customer, nil }

// Floor decodes a GraphQL request and writes a JSON response with net/http and
// encoding/json only.
func Floor() http.Handler {
	type task struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	type payload struct {
		OrderTask  task       `json:"orderTask"`
		Replayed   bool       `json:"replayed"`
		UserErrors []struct{} `json:"userErrors"`
	}
	type data struct {
		PlaceOrder payload `json:"placeOrder"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Query         string
			OperationName string
			Variables     map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := json.Marshal(struct {
			Data data `json:"data"`
		}{data{payload{OrderTask: task{NoTask.Public(), "SUBMITTED"}, UserErrors: []struct{}{}}}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out) // the client may have disconnected
	})
}
