package queue_test

import (
	"slices"
	"testing"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// second returns a fixture of another open item of the same sale.
func (f *fixture) second() *fixture {
	f.t.Helper()
	other := &fixture{
		t: f.t, redis: f.redis, keys: f.keys, captchas: f.captchas, paths: f.paths, queue: f.queue, sale: f.sale, item: id.New[id.Item](), shard: f.shard,
	}
	other.gate("gate", "open")
	return other
}

// issue requires a path token without the waiting room.
func (f *fixture) issue(user id.User) path.Path {
	f.t.Helper()
	p, err := f.paths.Issue(f.t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: user, Waived: true})
	if err != nil {
		f.t.Fatalf("issue: %v", err)
	}
	return p
}

// deep is the second in which the room was last searched beyond one pass.
func (f *fixture) deep() string {
	return f.redis.HGet(f.t.Context(), f.keys.WaitingRoomStats(f.shard, f.item), "deep").Val()
}

func TestAnAdmissionToOneItemLeavesThatToAnother(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, a *fixture) {
		b, user := a.second(), id.New[id.User]()
		first, then := a, b
		inA, inB := a.enter(user), b.enter(user)
		if n := a.step()["admitted"]; n != 1 {
			t.Fatalf("%d turns at once for one person", n)
		}
		had, waits := a.ticket(inA), b.ticket(inB)
		if had.Status == queue.Waiting {
			first, then, had, waits = b, a, waits, had
		}
		if had.Path == nil || waits.Status != queue.Waiting || waits.Position == nil {
			t.Fatalf("%+v and %+v", had, waits)
		}
		if n := a.step()["admitted"]; n != 0 || !first.buy(first.ticket(had)) {
			t.Fatalf("%d admitted, and the path of the first turn is not good", n)
		}
		if n := a.step()["admitted"]; n != 1 || !then.buy(then.ticket(waits)) {
			t.Errorf("%d admitted; the second turn came to nothing once the first path was used", n)
		}
	})
}

func TestATurnLeavesAPathBoughtForAnotherItem(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, a *fixture) {
		b, user := a.second(), id.New[id.User]()
		place := a.enter(user)
		bought := b.issue(user)
		a.step()
		if got := a.ticket(place); got.Status != queue.Waiting {
			t.Errorf("%+v", got)
		}
		if n := a.redis.ZCard(t.Context(), a.keys.Permits(a.shard, b.item)).Val(); n != 1 {
			t.Errorf("%d permits, want that of the path", n)
		}
		if !b.buy(&queue.Ticket{User: user, Path: &bought}) {
			t.Error("the path just bought is not good")
		}
	})
}

func TestAUserWithAnotherPathBlocksNoOtherAndKeepsThePlace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, a *fixture) {
		const holders = 230 // more than one pass reads
		b := a.second()
		b.set("stock", holders, "total", holders)
		var held []*queue.Ticket
		a.set("opens", time.Now().Add(time.Hour).UnixMilli())
		for i := range holders {
			if i == holders/2 { // half of them entered before the opening
				a.set("opens", time.Now().Add(-time.Minute).UnixMilli())
			}
			user := id.New[id.User]()
			held = append(held, a.enter(user))
			b.issue(user)
		}
		behind := []*queue.Ticket{a.enter(id.New[id.User]()), a.enter(id.New[id.User]()), a.enter(id.New[id.User]())}
		line := a.line()
		a.set("stock", 1)
		if n := a.step()["admitted"]; n != 1 || a.ticket(behind[0]).Path == nil || a.ticket(behind[1]).Status != queue.Waiting {
			t.Fatalf("%d admitted behind people who have another path", n)
		}
		deep := a.deep()
		a.set("stock", 2)
		testenv.Eventually(t, testenv.Wait, func() bool { return a.step()["admitted"] == 1 }, "the next one is let in")
		if a.ticket(behind[1]).Path == nil || a.ticket(behind[2]).Status != queue.Waiting || deep == "" || a.deep() == deep {
			t.Errorf("the line was searched to its end in second %s, then %s", deep, a.deep())
		}
		if got := a.line(); !slices.Equal(got, append(line[:holders:holders], behind[2].ID.String())) {
			t.Error("who was passed over lost the place")
		}
		back := held[slices.IndexFunc(held, func(h *queue.Ticket) bool { return h.ID.String() == line[7] })]
		b.expire(back.User)
		if _, err := a.queue.Leave(t.Context(), behind[0].ID, behind[0].User); err != nil {
			t.Fatal(err)
		}
		if n := a.step()["admitted"]; n != 1 || a.ticket(back).Path == nil || a.ticket(behind[2]).Status != queue.Waiting {
			t.Errorf("%d admitted; whose other path expired was not the first again", n)
		}
	})
}
