package path_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// calls counts the scripts that Redis ran.
type calls struct{ n atomic.Int64 }

func (c *calls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

// Concurrent requests are batched into one script call. A buyer who requests two items concurrently
// has one token in the end, and the items give away what their ratio allows.
func TestACrowdSharesCallsAndEachBuyerHasOneToken(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn, prefix, 1)
	const buyers, stock = 100, 60
	f.gate("stock", stock)
	other := *f
	other.item = id.New[id.Item]()
	other.gate("gate", "open", "stock", stock)
	counted := &calls{}
	conn.Script.AddHook(counted)
	start := make(chan struct{})
	var all sync.WaitGroup
	users := make([]id.User, buyers)
	for i := range users {
		users[i] = id.New[id.User]()
		for _, item := range []id.Item{f.item, other.item} {
			in := f.input(users[i], captcha.Answer{})
			in.Waived, in.Item = true, item
			all.Go(func() {
				<-start
				_, err := f.paths.Issue(t.Context(), in)
				_ = testenv.Refusal(t, err) // NoPermit
			})
		}
	}
	close(start)
	all.Wait()
	if n := counted.n.Load(); n > buyers {
		t.Errorf("%d calls for %d requests", n, 2*buyers)
	}
	held := 0
	for _, user := range users {
		one, two := f.stored(user) != "", other.stored(user) != ""
		if one && two {
			t.Errorf("%s has a token of both items", user)
		}
		if one || two {
			held++
		}
	}
	if n := f.permits(); n > stock {
		t.Errorf("%d permits for %d units", n, stock)
	}
	if n := other.permits(); n > stock || held == 0 {
		t.Errorf("%d permits for %d units, %d buyers with one", n, stock, held)
	}
}
