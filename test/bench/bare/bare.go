// Package bare is a minimal order path, kept as a baseline: the product's edge, one
// script that takes stock for a batch of calls, records the buyers and appends one
// message, and one transaction for the messages that were read together. It omits what
// makes the product safe: sale windows, path tokens, limits, idempotency keys, task
// records, epochs, dead letters, takeover of pending messages, push events to single
// buyers. A crash between two steps leaves its data wrong.
package bare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
)

const (
	maxBatch  = 256  // calls in one script
	readCount = 5    // messages in one transaction
	inFlight  = 2    // concurrent batches of each kind
	maxQueue  = 4096 // waiting calls
	group     = "orders"
	statusLen = 1000 // pushed states that are kept
)

// reserve takes a unit for each of ARGV[1] calls (user, record) and appends one message
// that begins with ARGV[2]. Reply per call: 1 taken, 0 sold out, -1 the user already has
// one.
var reserve = redis.NewScript(`
local n, users, reservations, reply, lines = tonumber(ARGV[1]), {}, {}, {}, { ARGV[2] }
for i = 1, n do users[i] = ARGV[2 * i + 1] end
local held = redis.call('HMGET', KEYS[2], unpack(users))
local stock = tonumber(redis.call('GET', KEYS[1]) or '0')
for i = 1, n do
  if held[i] then
    reply[i] = -1
  elseif stock < 1 then
    reply[i] = 0
  else
    local record = ARGV[2 * i + 2]
    stock, reply[i] = stock - 1, 1
    reservations[#reservations + 1] = users[i]
    reservations[#reservations + 1] = record
    lines[#lines + 1] = users[i] .. '|' .. record
  end
end
if #reservations > 0 then
  redis.call('SET', KEYS[1], stock)
  redis.call('HSET', KEYS[2], unpack(reservations))
  redis.call('XADD', KEYS[3], '*', 'payload', table.concat(lines, '\n'))
end
return reply`)

// Config holds the dependencies of a Shop.
type Config struct {
	DB     *postgres.DB
	Redis  *redis.Client
	Prefix string // of the keys
	Sale   id.Sale
	Item   id.Item
	Stock  int
}

// Shop sells one item, whichever item a call names.
type Shop struct {
	cfg   Config
	queue chan *call
}

type call struct {
	user, record string
	done         chan error
}

// Open writes the stock to Redis.
func Open(ctx context.Context, cfg Config) (*Shop, error) {
	s := &Shop{cfg: cfg, queue: make(chan *call, maxQueue)}
	if err := cfg.Redis.Set(ctx, s.stock(), cfg.Stock, 0).Err(); err != nil {
		return nil, fmt.Errorf("load the stock: %w", err)
	}
	if err := cfg.Redis.XGroupCreateMkStream(ctx, s.stream(), group, "0").Err(); err != nil {
		return nil, fmt.Errorf("make the group: %w", err)
	}
	return s, nil
}

func (s *Shop) stock() string        { return s.cfg.Prefix + "stock" }
func (s *Shop) reservations() string { return s.cfg.Prefix + "reservations" }
func (s *Shop) stream() string       { return s.cfg.Prefix + "orders" }
func (s *Shop) states() string       { return s.cfg.Prefix + "states" }

// Run accepts and writes orders until ctx ends or a step fails.
func (s *Shop) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for n := range inFlight {
		g.Go(func() error { return s.takeIn(ctx) })
		g.Go(func() error { return s.writeOut(ctx, strconv.Itoa(n)) })
	}
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Place is the shop's placeOrder.
func (s *Shop) Place(ctx context.Context, in model.PlaceOrderInput) (*model.PlaceOrderPayload, error) {
	task, user := id.NewTask(id.ShardOf(s.cfg.Sale)), auth.PrincipalFrom(ctx).UserID
	record := fmt.Sprintf("%s|%d|%d|%s", task, in.Quantity, time.Now().UnixMilli(), in.IdempotencyKey)
	c := &call{user: user.String(), record: record, done: make(chan error, 1)}
	var err error
	select {
	case s.queue <- c:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case err = <-c.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return &model.PlaceOrderPayload{
		OrderTask:  &model.OrderTask{ID: task, Status: order.Submitted},
		UserErrors: []model.UserError{},
	}, nil
}

// takeIn runs the script for the calls that arrived during the previous script.
func (s *Shop) takeIn(ctx context.Context) error {
	batch := make([]*call, 0, maxBatch)
	head := fmt.Sprintf("v2\n@%s|%s|1|100|USD|900", s.cfg.Sale, s.cfg.Item)
	for {
		select {
		case c := <-s.queue:
			batch = append(batch[:0], c)
		case <-ctx.Done():
			return ctx.Err()
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case c := <-s.queue:
				batch = append(batch, c)
			default:
				more = false
			}
		}
		args := append(make([]any, 0, 2+2*len(batch)), len(batch), head)
		for _, c := range batch {
			args = append(args, c.user, c.record)
		}
		codes, err := reserve.Run(ctx, s.cfg.Redis, []string{s.stock(), s.reservations(), s.stream()}, args...).Int64Slice()
		for i, c := range batch {
			refused := err
			if err == nil && codes[i] != 1 {
				refused = fmt.Errorf("refused with %d", codes[i])
			}
			c.done <- refused
		}
	}
}

// writeOut writes the orders of the messages that were read together and publishes their
// tasks.
func (s *Shop) writeOut(ctx context.Context, consumer string) error {
	for {
		read, err := s.cfg.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: []string{s.stream(), ">"}, Count: readCount, Block: time.Second,
		}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return err
		}
		var orders []order.Request
		ids := make([]string, len(read[0].Messages))
		for i, entry := range read[0].Messages {
			ids[i] = entry.ID
			payload, _ := entry.Values["payload"].(string)
			taken, err := order.Decode(stream.NewMessage("", []byte(payload)))
			if err != nil {
				return err
			}
			orders = append(orders, taken...)
		}
		tasks, err := s.write(ctx, orders)
		if err != nil {
			return err
		}
		if _, err := s.cfg.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.XAck(ctx, s.stream(), group, ids...)
			return p.XAdd(ctx, &redis.XAddArgs{Stream: s.states(), MaxLen: statusLen, Approx: true,
				Values: []any{"tasks", tasks}}).Err()
		}); err != nil {
			return err
		}
	}
}

// write inserts the orders in one transaction and returns the task ids joined into one
// text.
func (s *Shop) write(ctx context.Context, orders []order.Request) (tasks string, err error) {
	column := func(text func(order.Request) string) string {
		texts := make([]string, len(orders))
		for i, o := range orders {
			texts[i] = text(o)
		}
		return "{" + strings.Join(texts, ",") + "}"
	}
	tasks = column(func(o order.Request) string { return o.Task.String() })
	numbers := column(func(o order.Request) string { return "B" + o.Task.String() })
	users := column(func(o order.Request) string { return o.User.String() })
	tx, err := s.cfg.DB.SQL.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	now := time.Now()
	if _, err = tx.ExecContext(ctx, `INSERT INTO orders (id, number, sale_id, item_id, user_id, quantity, unit_price_minor, currency,
		epoch, reserved_at, created_at, updated_at, payment_deadline)
		SELECT id, number, $4, $5, buyer, 1, 100, 'USD', 1, $6, $6, $6, $7 FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS t (id, number, buyer)`,
		tasks, numbers, users, s.cfg.Sale, s.cfg.Item, now, now.Add(15*time.Minute)); err != nil {
		return "", err
	}
	if _, err = tx.ExecContext(ctx, `UPDATE sale_items SET available = available - $2, held = held + $2, revision = revision + 1
		WHERE id = $1 AND available >= $2`, s.cfg.Item, len(orders)); err != nil {
		return "", err
	}
	return tasks, tx.Commit()
}
