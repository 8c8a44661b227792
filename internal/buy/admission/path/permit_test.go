package path_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestUnusedPathsNeverExceedTheRatioOfTheStock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ratio float64
		stock int
		want  int64
	}{
		{1.5, 10, 15}, {1.5, 3, 5}, {1.5, 1, 2}, {1, 1, 1}, {1.1, 10, 11}, {0.5, 1, 1}, {1.2, 7, 9},
	} {
		t.Run(fmt.Sprintf("%g of %d", test.ratio, test.stock), func(t *testing.T) {
			t.Parallel()
			onBothWith(t, test.ratio, func(t *testing.T, f *fixture) {
				f.gate("stock", test.stock)
				var given atomic.Int64
				var all sync.WaitGroup
				places := make(chan struct{}, 20)
				for range 60 {
					all.Go(func() {
						places <- struct{}{}
						defer func() { <-places }()
						in := f.input(id.New[id.User](), captcha.Answer{})
						in.Waived = true
						_, err := f.paths.Issue(t.Context(), in)
						if err == nil {
							given.Add(1)
						} else if r, ok := errors.AsType[path.NoPermit](err); !ok || r.RetryAfter <= 0 || r.Reason() != fault.TooManyTries {
							t.Errorf("refused with %v", err)
						}
					})
				}
				all.Wait()
				if given.Load() != test.want || f.permits() != test.want {
					t.Errorf("%d paths, %d permits; want %d", given.Load(), f.permits(), test.want)
				}
			})
		})
	}
}

func TestAUserWithAPermitMayReplaceThePath(t *testing.T) {
	t.Parallel()
	onBothWith(t, 1, func(t *testing.T, f *fixture) {
		f.gate("stock", 1)
		in := f.input(id.New[id.User](), captcha.Answer{})
		in.Waived = true
		f.issue(in)
		f.issue(in)
		if f.permits() != 1 {
			t.Errorf("%d permits", f.permits())
		}
	})
}

func TestARefusedPathDoesNotUseUpTheCaptchaAnswer(t *testing.T) {
	t.Parallel()
	onBothWith(t, 1, func(t *testing.T, f *fixture) {
		user := id.New[id.User]()
		a := f.challenge(user)
		f.gate("stock", 0)
		if r := refused[reservation.NoneLeft](f, f.input(user, a)); r.Item != f.item {
			t.Errorf("%+v", r)
		}
		f.gate("stock", 1)
		other := f.input(id.New[id.User](), captcha.Answer{})
		other.Waived = true
		f.issue(other)
		refused[path.NoPermit](f, f.input(user, a))
		f.gate("stock", 2) // a unit was released
		f.issue(f.input(user, a))
	})
}

// Only the reserve script of package reservation uses up path tokens.
func TestPathIsGoodForOneReservation(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn, prefix, 1.5)
	ctx := t.Context()
	reserver := reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: f.keys, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler)})

	user := id.New[id.User]()
	p := f.issue(f.input(user, f.challenge(user)))
	codes := make(chan reservation.Code, 101)
	try := func(who id.User) {
		o, err := reserver.Reserve(ctx, reservation.Attempt{
			Task: id.NewTask(f.shard), Sale: f.sale, Item: f.item, User: who, Quantity: 1,
			Permit:         f.paths.Permit(who, f.item, p.Token),
			IdempotencyKey: id.New[uuid.UUID]().String(), Terms: "1|EUR|900",
		})
		if err != nil {
			t.Error(err)
		}
		codes <- o.Code
	}
	try(id.New[id.User]()) // another user with the token
	if code := <-codes; code != reservation.PathInvalid {
		t.Errorf("another person's use: %d", code)
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { try(user) })
	}
	all.Wait()
	close(codes)
	accepted := 0
	for code := range codes {
		if code == reservation.Accepted {
			accepted++
		}
	}
	if accepted != 1 || f.permits() != 0 || f.stored(user) != "" {
		t.Errorf("%d accepted, %d permits, path %q; want 1, 0, none", accepted, f.permits(), f.stored(user))
	}
}

// lossy cuts the connection after Redis ran the first script, before the reply.
type lossy struct {
	cut atomic.Bool
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && cmd.Name() == "evalsha" && l.cut.CompareAndSwap(true, false) {
			err = &net.OpError{Op: "read", Err: net.ErrClosed}
			cmd.SetErr(err)
		}
		return err
	}
}

func TestLostReplyIsAskedForAgainAndGivesTheSamePath(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn, prefix, 1)
	f.gate("stock", 1)
	user := id.New[id.User]()
	f.issue(f.input(user, f.challenge(user))) // loads the script
	a := f.challenge(user)
	hook := &lossy{}
	conn.Script.AddHook(hook)
	hook.cut.Store(true)
	p := f.issue(f.input(user, a))
	if hook.cut.Load() {
		t.Fatal("no reply was lost")
	}
	if f.stored(user) != "7|"+p.Token || f.permits() != 1 {
		t.Errorf("stored %q, %d permits", f.stored(user), f.permits())
	}
}

func TestGrantedPathsAreUsable(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn, prefix, 1.5)
	users := make([]id.User, 2500) // more than one batch
	for i := range users {
		users[i] = id.New[id.User]()
	}
	tokens, err := f.paths.Grant(t.Context(), path.GrantInput{Sale: f.sale, Item: f.item, Users: users, Life: time.Hour})
	if err != nil || len(tokens) != len(users) {
		t.Fatalf("%d tokens, %v", len(tokens), err)
	}
	for _, i := range []int{0, 999, 1000, 2499} {
		if f.stored(users[i]) != "7|"+tokens[i] {
			t.Errorf("user %d: stored %q, token %q", i, f.stored(users[i]), tokens[i])
		}
	}
	gate := reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: f.keys, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler)})
	o, err := gate.Reserve(t.Context(), reservation.Attempt{
		Task: id.NewTask(f.shard), Sale: f.sale, Item: f.item, User: users[7], Quantity: 1, Permit: f.paths.Permit(users[7], f.item, tokens[7]),
		IdempotencyKey: id.New[uuid.UUID]().String(), Terms: "1|EUR|900",
	})
	if err != nil || o.Code != reservation.Accepted {
		t.Errorf("%+v, %v", o, err)
	}
	f.issue(path.IssueInput{Sale: f.sale, Item: f.item, User: id.New[id.User](), Waived: true}) // they are not counted
	if _, err := f.paths.Grant(t.Context(), path.GrantInput{Sale: f.sale, Item: id.New[id.Item](), Users: users[:1]}); err == nil {
		t.Error("paths to an item without a gate")
	}
}
