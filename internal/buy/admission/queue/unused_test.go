package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// expire lets the unused path token of a user expire now.
func (f *fixture) expire(user id.User) {
	f.t.Helper()
	ctx := f.t.Context()
	f.must(f.redis.ZAddXX(ctx, f.keys.Permits(f.shard, f.item), redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: user.String()}).Err())
}

// counted returns the expiries of a user in the sale.
func (f *fixture) counted(user id.User) int {
	n, err := f.redis.Get(f.t.Context(), f.keys.Expiries(f.shard, f.sale, user)).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		f.t.Fatal(err)
	}
	return n
}

func TestABuyerWhomTheFormerReleaseAdmittedGetsASignedToken(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		place := f.enter(id.New[id.User]())
		f.step()
		key := f.keys.Ticket(f.shard, place.ID)
		f.must(f.redis.HDel(t.Context(), key, "epoch").Err())
		f.must(f.redis.HSet(t.Context(), key, "value", "7|random", "token", "random").Err())
		if got := f.ticket(place); got.Status != queue.Admitted || !f.buy(got) {
			t.Errorf("%+v", got)
		}
	})
}

func TestAccountsThatNeverBuyCannotKeepAnItemForThemselves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		attacker, buyer := id.New[id.User](), id.New[id.User]()
		first := f.issue(attacker)
		if second := f.issue(attacker); second.Token == first.Token || second.ExpiresAt.After(first.ExpiresAt) {
			t.Errorf("a renewed path expires at %s, the first at %s", second.ExpiresAt, first.ExpiresAt)
		}
		place := f.enter(buyer)
		_, err := f.paths.Issue(t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: attacker, Waived: true})
		if _, ok := errors.AsType[path.NoPermit](err); !ok {
			t.Errorf("a path was renewed past a buyer who waits: %v", err)
		}
		again := f.enter(attacker)
		if again.Status != queue.Waiting || again.Position == nil || again.Position.Ahead != 1 {
			t.Errorf("the attacker's place: %+v", again)
		}
		f.expire(attacker)
		f.step()
		if got := f.ticket(place); got.Status != queue.Admitted || !f.buy(got) {
			t.Errorf("the buyer after the first expiry: %+v", got)
		}
	})
}

func TestPathsThatExpireUnusedCountLikeUnpaidReservations(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user, bought, gone := id.New[id.User](), id.New[id.User](), id.New[id.User]()
		for range 2 {
			f.issue(user)
			f.expire(user)
			f.worked(user) // a new challenge voids unused tokens; an expired one stays counted
		}
		_, err := f.paths.Issue(t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: user, Waived: true})
		if r, ok := errors.AsType[fault.Throttled](err); !ok || r.RetryAfter < time.Minute {
			t.Errorf("a third path: %v", err)
		}
		_, err = f.queue.Enter(t.Context(), f.input(user))
		if r, ok := errors.AsType[fault.Throttled](err); !ok || r.RetryAfter < time.Minute {
			t.Errorf("a place: %v", err)
		}
		f.set("stock", 10)
		f.issue(gone)
		f.expire(gone)
		if ticket := f.enter(bought); ticket == nil {
			t.Fatal("no ticket")
		}
		f.step() // counts those who never come back, too
		if n := f.counted(gone); n != 1 {
			t.Errorf("%d expiries of a user who left", n)
		}
		f.issue(id.New[id.User]()) // removes used and expired permits
		if n := f.counted(bought); n != 0 {
			t.Errorf("%d expiries of a user with an unexpired path", n)
		}
		f.set("stock", 0)
		sold := id.New[id.User]()
		f.must(f.redis.ZAdd(t.Context(), f.keys.Permits(f.shard, f.item), redis.Z{Score: 1, Member: sold.String()}).Err())
		_, _ = f.paths.Issue(t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: sold, Waived: true})
		if n := f.counted(sold); n != 0 {
			t.Errorf("%d expiries of a buyer for whom nothing was left", n)
		}
	})
}

// A buyer who was admitted while away finds the sale over: the ticket says so, whether the
// path token has expired or not. A ticket that became an order stays as it was.
func TestAnAdmissionThatBoughtNothingEndsWithTheSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		away, late, buyer := f.enter(id.New[id.User]()), f.enter(id.New[id.User]()), f.enter(id.New[id.User]())
		f.step()
		for _, ticket := range []*queue.Ticket{away, late, buyer} {
			if got := f.ticket(ticket); got.Status != queue.Admitted {
				t.Fatalf("not admitted: %+v", got)
			}
		}
		f.expire(away.User)
		if !f.buy(f.ticket(buyer)) {
			t.Fatal("the third buyer bought nothing")
		}
		f.set("gate", "ended")
		for _, ticket := range []*queue.Ticket{away, late} {
			if got := f.ticket(ticket); got.Status != queue.Closed || got.Path != nil {
				t.Errorf("an admission that bought nothing, after the end: %+v", got)
			}
		}
		if got := f.ticket(buyer); got.Status != queue.Admitted {
			t.Errorf("an admission that became an order: %+v", got)
		}
	})
}
