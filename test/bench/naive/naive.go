// Package naive is the obvious first design, kept as a baseline: gqlgen's own handler, a
// script that takes stock followed by a message published in a second round trip,
// watermill-redisstream's subscriber, one transaction per order. It is not fit for
// production: a crash between the two round trips loses a unit.
package naive

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/test/bench/baseline"
)

// queryCache is the number of parsed documents kept, the default of gqlgen's server.
const queryCache = 1000

// reserve takes a unit for a user. Reply: 1 taken, 0 sold out, -1 the user already has
// one.
var reserve = redis.NewScript(`
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return -1 end
if tonumber(redis.call('GET', KEYS[1]) or '0') < 1 then return 0 end
redis.call('DECR', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1`)

// Config holds the dependencies of a Shop.
type Config struct {
	DB     *postgres.DB
	Redis  *redis.Client // with the library's default settings
	Prefix string        // of the keys
	Tokens *auth.Tokens
	Sale   id.Sale
	Item   id.Item
	Stock  int
	Log    *slog.Logger
}

// Shop sells one item.
type Shop struct {
	cfg       Config
	publisher message.Publisher
	router    *message.Router
}

// Open writes the stock to Redis and wires the shop.
func Open(ctx context.Context, cfg Config) (*Shop, error) {
	s := &Shop{cfg: cfg}
	if err := cfg.Redis.Set(ctx, s.stock(), cfg.Stock, 0).Err(); err != nil {
		return nil, fmt.Errorf("load the stock: %w", err)
	}
	var err error
	if s.publisher, err = redisstream.NewPublisher(redisstream.PublisherConfig{Client: cfg.Redis},
		watermill.NopLogger{}); err != nil {
		return nil, err
	}
	subscriber, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
		Client: cfg.Redis, ConsumerGroup: "orders", Consumer: "naive", DisableIndefiniteInitialBlock: true,
	}, watermill.NopLogger{})
	if err != nil {
		return nil, err
	}
	if s.router, err = message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}); err != nil {
		return nil, err
	}
	s.router.AddConsumerHandler("orders", s.stream(), subscriber, s.write)
	return s, nil
}

func (s *Shop) stock() string        { return s.cfg.Prefix + "stock" }
func (s *Shop) reservations() string { return s.cfg.Prefix + "reservations" }
func (s *Shop) stream() string       { return s.cfg.Prefix + "orders" }

// Run writes orders until ctx ends.
func (s *Shop) Run(ctx context.Context) error { return s.router.Run(ctx) }

// Handler serves GraphQL with gqlgen's handler.
func (s *Shop) Handler() http.Handler {
	srv := handler.New(baseline.Schema(s.place, nil))
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(lru.New[*ast.QueryDocument](queryCache))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		principal, err := s.cfg.Tokens.Verify(r.Context(), token)
		if err != nil {
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		srv.ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), principal)))
	})
}

// place takes a unit, then publishes the order: two round trips.
func (s *Shop) place(ctx context.Context, in model.PlaceOrderInput) (*model.PlaceOrderPayload, error) {
	user := auth.PrincipalFrom(ctx).UserID
	task := id.NewTask(id.ShardOf(s.cfg.Sale))
	taken, err := reserve.Run(ctx, s.cfg.Redis, []string{s.stock(), s.reservations()}, user.String(), task.String()).Int()
	if err != nil {
		return nil, err
	}
	if taken != 1 {
		return nil, fmt.Errorf("refused with %d", taken)
	}
	payload, err := json.Marshal(order.Request{
		V: 1, Task: task, User: user, Sale: s.cfg.Sale, Item: s.cfg.Item, Quantity: in.Quantity, UnitPriceMinor: 100,
		Currency:             "USD",
		PaymentWindowSeconds: 900, IdempotencyKey: in.IdempotencyKey, Epoch: 1, SubmittedAtMs: time.Now().UnixMilli(),
	})
	if err != nil {
		return nil, err
	}
	if err := s.publisher.Publish(s.stream(), message.NewMessage(task.String(), payload)); err != nil {
		return nil, err
	}
	return &model.PlaceOrderPayload{
		OrderTask:  &model.OrderTask{ID: task, Status: order.Submitted},
		UserErrors: []model.UserError{},
	}, nil
}

// write inserts one order for one message in one transaction.
func (s *Shop) write(msg *message.Message) error {
	var r order.Request
	if err := json.Unmarshal(msg.Payload, &r); err != nil {
		return err
	}
	ctx, now := msg.Context(), time.Now()
	tx, err := s.cfg.DB.SQL.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, number, sale_id, item_id, user_id, quantity, unit_price_minor, currency,
		epoch, reserved_at, created_at, updated_at, payment_deadline) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12)`,
		r.Task, "N"+r.Task.String(), r.Sale, r.Item, r.User, r.Quantity, r.UnitPriceMinor, r.Currency,
		r.Epoch, time.UnixMilli(r.SubmittedAtMs), now, now.Add(15*time.Minute))
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, `UPDATE sale_items SET available = available - $2, held = held + $2, revision = revision + 1
		WHERE id = $1 AND available >= $2`, r.Item, r.Quantity); err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, `INSERT INTO stock_movements (id, order_id, item_id, kind, quantity, created_at)
		VALUES ($1, $2, $3, 'HOLD', $4, $5)`, id.New[uuid.UUID](), r.Task, r.Item, r.Quantity, now); err != nil {
		return err
	}
	return tx.Commit()
}
