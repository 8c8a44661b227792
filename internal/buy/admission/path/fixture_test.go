package path_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// fixture is one open sale with one item of ten units.
type fixture struct {
	t        testing.TB
	redis    redis.UniversalClient
	conn     *redisconn.Conn
	keys     reservation.Keys
	captchas *captcha.Service
	paths    *path.Service
	sale     id.Sale
	item     id.Item
	shard    int
}

func newFixture(t *testing.T, conn *redisconn.Conn, prefix string, ratio float64) *fixture {
	t.Helper()
	f := &fixture{t: t, redis: conn.Cmd, conn: conn, keys: reservation.Keys{Prefix: prefix}, sale: id.New[id.Sale](), item: id.New[id.Item]()}
	f.shard = id.ShardOf(f.sale)
	f.captchas = newCaptchas(t, conn, f.keys, nil)
	f.paths = path.New(path.Config{Client: conn.Script, Keys: f.keys, Captchas: f.captchas, Tokens: path.NewTokens(secrets), Ratio: ratio})
	f.gate("gate", "open")
	return f
}

// redisClock is the clock of a Redis, as processes follow it.
type redisClock struct {
	t     testing.TB
	redis redis.UniversalClient
}

func (c redisClock) Now() time.Time {
	c.t.Helper()
	now, err := c.redis.Time(context.WithoutCancel(c.t.Context())).Result()
	if err != nil {
		return time.Now().UTC()
	}
	return now.UTC()
}

func newCaptchas(t testing.TB, conn *redisconn.Conn, keys reservation.Keys, outside *captcha.Outside) *captcha.Service {
	t.Helper()
	s, err := captcha.New(captcha.Config{
		Client: conn.Script, Keys: keys, Clock: redisClock{t, conn.Cmd}, Secret: []byte(strings.Repeat("captcha!", 4)), PowMax: 20, Wait: testenv.Wait, Outside: outside,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gate builds the gate of the item once and sets fields.
func (f *fixture) gate(changes ...any) {
	f.t.Helper()
	now := time.Now()
	f.build(7)
	fields := append([]any{
		"sale", f.sale.String(), "epoch", 7, "limit", 1, "total", 10, "stock", 10, "reserved", 0, "rev", 1,
		"opens", now.Add(-time.Minute).UnixMilli(), "closes", now.Add(time.Hour).UnixMilli(),
	}, changes...)
	if err := f.redis.HSet(f.t.Context(), f.keys.Item(f.shard, f.item), fields...).Err(); err != nil {
		f.t.Fatal(err)
	}
}

// build builds the gate under an epoch, unless it has that epoch.
func (f *fixture) build(epoch int64) {
	f.t.Helper()
	gate := reservation.NewGate(reservation.GateConfig{Client: f.redis, Keys: f.keys, Timeout: testenv.Wait})
	begun, err := gate.Begin(f.t.Context(), f.sale, f.item, epoch)
	if err == nil && begun {
		_, err = gate.Open(f.t.Context(), reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: epoch, Limit: 1, Total: 10, Stock: 10, Revision: 1,
			Opens: time.Now().Add(-time.Minute), Closes: time.Now().Add(time.Hour),
		})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func onBoth(t *testing.T, test func(t *testing.T, f *fixture)) { onBothWith(t, 0, test) }

func onBothWith(t *testing.T, ratio float64, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, newFixture(t, conn, prefix, ratio))
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		f, _ := embedded(t, ratio)
		test(t, f)
	})
}

func embedded(t *testing.T, ratio float64) (*fixture, *miniredis.Miniredis) {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(mini.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return newFixture(t, conn, "t:", ratio), mini
}

// challenge creates a captcha of the user for the sale and solves it.
func (f *fixture) challenge(user id.User) captcha.Answer {
	f.t.Helper()
	c, err := f.captchas.Create(f.t.Context(), captcha.CreateInput{
		Purpose: captcha.Seckill, Sale: f.sale, User: user, Kind: captcha.ProofOfWork,
	})
	if err != nil {
		f.t.Fatalf("create captcha: %v", err)
	}
	return f.solve(c)
}

func (f *fixture) solve(c captcha.Challenge) captcha.Answer {
	f.t.Helper()
	text, err := captcha.Solve(c.Parameters)
	if err != nil {
		f.t.Fatal(err)
	}
	return captcha.Answer{ChallengeID: c.ID, Text: text}
}

func (f *fixture) input(user id.User, a captcha.Answer) path.IssueInput {
	return path.IssueInput{Sale: f.sale, Item: f.item, User: user, Captcha: a}
}

// issue requires a path token.
func (f *fixture) issue(in path.IssueInput) path.Path {
	f.t.Helper()
	p, err := f.paths.Issue(f.t.Context(), in)
	if err != nil || p.Token == "" {
		f.t.Fatalf("issue: %+v, %v", p, err)
	}
	return p
}

// refused requires a refusal of type R.
func refused[R fault.Refusal](f *fixture, in path.IssueInput) R {
	f.t.Helper()
	p, err := f.paths.Issue(f.t.Context(), in)
	r, ok := errors.AsType[R](err)
	if !ok || p.Token != "" {
		f.t.Fatalf("issue: %+v, %v; want %T", p, err, r)
	}
	return r
}

// secrets sign path tokens in tests.
var secrets = [][]byte{[]byte(strings.Repeat("new path", 4)), []byte(strings.Repeat("old path", 4))}

// stored returns "7|" and the user's path token, known by its permit in Redis; "" if there
// is none.
func (f *fixture) stored(user id.User) string {
	f.t.Helper()
	until, err := f.redis.ZScore(f.t.Context(), f.keys.Permits(f.shard, f.item), user.String()).Result()
	if errors.Is(err, redis.Nil) {
		return ""
	}
	if err != nil {
		f.t.Fatal(err)
	}
	p := reservation.Permit{Epoch: 7, Until: time.UnixMilli(int64(until))}
	if until > 0 && !p.Until.After(f.redis.Time(f.t.Context()).Val()) {
		return ""
	}
	return "7|" + path.NewTokens(secrets).Token(user, f.item, p)
}

func (f *fixture) permits() int64 {
	f.t.Helper()
	return f.redis.ZCard(f.t.Context(), f.keys.Permits(f.shard, f.item)).Val()
}
