package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestEnteringTwiceGivesTheSamePlace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		a, b := f.enter(id.New[id.User]()), f.enter(id.New[id.User]())
		if again := f.enter(b.User); again.ID != b.ID || again.Position.Ahead != 1 {
			t.Errorf("waiting: %+v", again)
		}
		f.step()
		if again := f.enter(a.User); again.ID != a.ID || again.Status != queue.Admitted || again.Path == nil {
			t.Errorf("admitted: %+v", again)
		}
		if b = f.ticket(b); b.Status != queue.Waiting || b.Position.Ahead != 0 {
			t.Errorf("the second: %+v", b)
		}
		if !f.buy(f.ticket(a)) {
			t.Error("the path of the admitted is not good")
		}
		_, err := f.queue.Enter(t.Context(), f.input(a.User))
		if _, ok := errors.AsType[reservation.AlreadyOrdered](err); !ok {
			t.Errorf("who holds a unit enters: %v", err)
		}
	})
}

func TestAPlaceCostsACaptchaAndIsRefusedForAReason(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		refusal := func(in queue.EnterInput) fault.Refusal {
			_, err := f.queue.Enter(t.Context(), in)
			return testenv.Refusal(f.t, err)
		}
		in := f.input(id.New[id.User]())
		in.Waived = false
		if _, ok := refusal(in).(captcha.Required); !ok {
			t.Error("no captcha was asked for")
		}
		f.set("stock", 0)
		if _, ok := refusal(f.input(id.New[id.User]())).(reservation.NoneLeft); !ok {
			t.Error("a sold-out item has a waiting room")
		}
		for gate, phase := range map[string]sale.Phase{"paused": sale.PhasePaused, "ended": sale.PhaseEnded} {
			f.set("gate", gate)
			if n, ok := refusal(f.input(id.New[id.User]())).(sale.NotOpen); !ok || n.Phase != phase {
				t.Errorf("%s: %+v", gate, n)
			}
		}
		f.must(f.redis.Del(t.Context(), f.keys.Item(f.shard, f.item)).Err())
		in = f.input(id.New[id.User]())
		in.Opens = time.Now().Add(time.Hour)
		if n, ok := refusal(in).(sale.NotOpen); !ok || n.Phase != sale.PhaseUpcoming {
			t.Errorf("not loaded: %+v", n)
		}
	})
}

func TestNoUserOvertakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		issue := func(user id.User, queued bool) fault.Refusal {
			_, err := f.paths.Issue(t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: user, Waived: true, Queued: queued})
			return testenv.Refusal(f.t, err)
		}
		first := id.New[id.User]()
		if r := issue(first, false); r != nil {
			t.Fatalf("an empty room: %#v", r)
		}
		if _, ok := issue(id.New[id.User](), true).(path.NoPermit); !ok {
			t.Error("a sale that limits its inflow gave a path at the door")
		}
		f.enter(id.New[id.User]())
		if _, ok := issue(id.New[id.User](), false).(path.NoPermit); !ok {
			t.Error("a path was given past a user who waits")
		}
		if _, ok := issue(first, false).(path.NoPermit); !ok {
			t.Error("a path was renewed past a buyer who waits")
		}
	})
}

func TestPermitsAndInflowBoundWhoIsAdmitted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 3)
		f.rules.Store(&queue.Rules{PerMille: 1500})
		var all []*queue.Ticket
		for range 20 {
			all = append(all, f.enter(id.New[id.User]()))
		}
		if n := f.step()["admitted"]; n != 5 {
			t.Errorf("%d admitted for three units at a ratio of 1.5, want 5", n)
		}
		if n := f.step()["admitted"]; n != 0 {
			t.Errorf("%d more admitted though all permits are out", n)
		}
		if _, err := f.queue.Leave(t.Context(), all[0].ID, all[0].User); err != nil {
			t.Fatal(err)
		}
		if n := f.step()["admitted"]; n != 1 || f.ticket(all[5]).Status != queue.Admitted {
			t.Errorf("a permit that came back admitted %d", n)
		}
		f.set("stock", 10)
		f.rules.Store(&queue.Rules{Inflow: 2})
		began, admitted := time.Now(), 0
		testenv.Eventually(t, testenv.Wait, func() bool {
			n := f.step()["admitted"]
			if n > 2 {
				t.Errorf("an inflow of 2 admitted %d at once", n)
			}
			admitted += n
			return admitted >= 6
		}, "six people are let in")
		if took := time.Since(began); took < time.Second {
			t.Errorf("an inflow of 2 a second admitted %d in %s", admitted, took)
		}
	})
}

// In a Cluster, the server of some shards may be down while the others answer.
func TestAShardThatCannotBeReadStopsNoOther(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		ticket := f.enter(id.New[id.User]())
		f.must(f.redis.Set(t.Context(), f.keys.WaitingRooms((f.shard+1)%id.Shards), "no set", 0).Err())
		if counts, err := f.queue.Step(t.Context()); err == nil || counts["admitted"] != 1 {
			t.Errorf("%v, %v", counts, err)
		}
		if now := f.ticket(ticket); now.Status != queue.Admitted {
			t.Errorf("ticket %+v", now)
		}
	})
}

func TestLeavingOrSilenceFreesThePlace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		holder := f.enter(id.New[id.User]())
		f.step()
		a, b, c := f.enter(id.New[id.User]()), f.enter(id.New[id.User]()), f.enter(id.New[id.User]())
		if left, err := f.queue.Leave(t.Context(), a.ID, b.User); left != nil || err != nil {
			t.Errorf("another user left for this one: %+v, %v", left, err)
		}
		if left, err := f.queue.Leave(t.Context(), a.ID, a.User); err != nil || left.Status != queue.Left || left.Position != nil {
			t.Errorf("left: %+v, %v", left, err)
		}
		if got := f.ticket(c).Position.Ahead; got != 1 {
			t.Errorf("after one left: %d ahead", got)
		}
		silent := float64(time.Now().Add(-patience - time.Second).UnixMilli())
		f.must(f.redis.ZAdd(t.Context(), f.keys.WaitingRoomBeats(f.shard, f.item), redis.Z{Score: silent, Member: b.ID.String()}).Err())
		// A pause of more than five seconds since the last step would grant b more time.
		f.must(f.redis.HSet(t.Context(), f.keys.WaitingRoomStats(f.shard, f.item), "pass", time.Now().Add(time.Hour).UnixMilli(), "resumed", 0).Err())
		if n := f.step()["freed"]; n != 1 || f.ticket(b).Status != queue.Left || f.ticket(c).Position.Ahead != 0 {
			t.Errorf("freed %d, %+v", n, f.ticket(b))
		}
		if !f.buy(f.ticket(holder)) {
			t.Error("the admitted could not buy")
		}
		again := f.enter(c.User)
		if again.ID != c.ID || *again.Position.Chance != 0 {
			t.Errorf("who waited when all was sold lost the place, or was promised something: %+v", again)
		}
	})
}

func TestNoPlaceIsLostWhileTheLoopWasAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 0)
		f.set("opens", time.Now().Add(time.Hour).UnixMilli())
		a := f.enter(id.New[id.User]())
		f.step()
		long := time.Now().Add(-time.Hour).UnixMilli()
		f.must(f.redis.ZAdd(t.Context(), f.keys.WaitingRoomBeats(f.shard, f.item), redis.Z{Score: float64(long), Member: a.ID.String()}).Err())
		f.must(f.redis.HSet(t.Context(), f.keys.WaitingRoomStats(f.shard, f.item), "pass", long).Err())
		if n := f.step()["freed"] + f.step()["freed"]; n != 0 || f.ticket(a).Status != queue.Waiting {
			t.Errorf("after an outage: %d freed, %+v", n, f.ticket(a))
		}
	})
}

func TestTheEndIsShownToAllWhoWait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 0)
		f.set("opens", time.Now().Add(time.Hour).UnixMilli())
		var all []*queue.Ticket
		for range 300 {
			all = append(all, f.enter(id.New[id.User]()))
		}
		f.set("opens", time.Now().Add(-time.Minute).UnixMilli())
		last := f.ticket(all[len(all)-1]) // the only buyer who saw a position
		f.rules.Store(&queue.Rules{Over: true})
		if n := f.step()["closed"]; n != len(all) || len(f.unserved) != n {
			t.Errorf("%d were notified, %d kept", n, len(f.unserved))
		}
		for _, u := range f.unserved {
			if u.Sale != f.sale || u.Item != f.item || u.Why != fault.SoldOut || (u.Ahead != nil) != (u.User == last.User) ||
				u.Ahead != nil && *u.Ahead != last.Position.Ahead {
				t.Fatalf("%+v", u)
			}
		}
		for _, ticket := range all {
			if got := f.ticket(ticket); got.Status != queue.Closed || got.Position != nil {
				t.Fatalf("%+v", got)
			}
		}
		if rooms := f.redis.SMembers(t.Context(), f.keys.WaitingRooms(f.shard)).Val(); len(rooms) != 0 {
			t.Errorf("rooms left: %v", rooms)
		}
	})
}

// Until the sale has ended, the clock of Redis alone closes no ticket: it may be wrong.
func TestAWrongClockOfRedisClosesNoTicket(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		buyer := f.enter(id.New[id.User]())
		f.set("closes", time.Now().Add(-time.Hour).UnixMilli())
		if n := f.step()["closed"]; n != 0 || f.ticket(buyer).Status != queue.Waiting {
			t.Errorf("%d closed, %+v", n, f.ticket(buyer))
		}
		f.set("gate", reservation.GateEnded)
		if n := f.step()["closed"]; n != 1 || f.ticket(buyer).Status != queue.Closed {
			t.Errorf("after the end: %d closed, %+v", n, f.ticket(buyer))
		}
	})
}

// A rebuild of the gate takes all path tokens away. Who was admitted is first again, before
// those who wait, without another captcha.
func TestARebuiltGateCostsTheAdmittedNoTurn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		first := f.enter(id.New[id.User]())
		f.step()
		if f.ticket(first).Status != queue.Admitted {
			t.Fatalf("%+v", f.ticket(first))
		}
		second := f.enter(id.New[id.User]())
		f.build(8)
		f.set("stock", 1)
		if again := f.enter(first.User); again.ID != first.ID || again.Status != queue.Waiting {
			t.Fatalf("after the rebuild: %+v, want ticket %s", again, first.ID)
		}
		if n := f.step()["admitted"]; n != 1 || f.ticket(second).Status != queue.Waiting {
			t.Errorf("%d admitted, the second is %+v", n, f.ticket(second))
		}
		got := f.ticket(first)
		if got.Status != queue.Admitted || got.Path == nil {
			t.Fatalf("the first is %+v", got)
		}
		if !f.buy(got) {
			t.Error("the new path token buys nothing")
		}
	})
}

func TestWatchingIsTheHeartbeatAndEndsWithThePath(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("stock", 1)
		first, second := f.enter(id.New[id.User]()), f.enter(id.New[id.User]())
		if _, err := f.queue.Watch(t.Context(), second.ID, first.User); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("another user's place: %v", err)
		}
		beats, long := f.keys.WaitingRoomBeats(f.shard, f.item), float64(time.Now().Add(-time.Hour).UnixMilli())
		f.must(f.redis.ZAdd(t.Context(), beats, redis.Z{Score: long, Member: second.ID.String()}).Err())
		events, err := f.queue.Watch(t.Context(), second.ID, second.User)
		f.must(err)
		e := <-events
		if !e.Snapshot || e.Value.Position == nil || e.Value.Position.Ahead != 1 {
			t.Fatalf("first event %+v %+v", e, e.Value)
		}
		f.step()
		if n := f.step()["freed"]; n != 0 {
			t.Errorf("%d places of people who watch were freed", n)
		}
		if _, err := f.queue.Leave(t.Context(), first.ID, first.User); err != nil {
			t.Fatal(err)
		}
		f.step()
		var last *queue.Ticket
		for e := range events {
			last = e.Value
		}
		if last == nil || last.Status != queue.Admitted || !f.buy(last) {
			t.Errorf("at the end: %+v", last)
		}
	})
}

func TestAskingForAPlaceKeepsItForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		place := f.enter(id.New[id.User]())
		beats, long := f.keys.WaitingRoomBeats(f.shard, f.item), float64(time.Now().Add(-patience-time.Hour).UnixMilli())
		for user, kept := range map[id.User]bool{id.New[id.User](): false, place.User: true} {
			f.must(f.redis.ZAdd(t.Context(), beats, redis.Z{Score: long, Member: place.ID.String()}).Err())
			got, err := f.queue.Own(t.Context(), place.ID, user)
			if err != nil || (got != nil) != kept {
				t.Fatalf("%+v, %v", got, err)
			}
			heard, err := f.redis.ZScore(t.Context(), beats, place.ID.String()).Result()
			if err != nil || (heard > long) != kept {
				t.Errorf("heard of at %f, %v", heard, err)
			}
		}
	})
}

func TestATicketThatIsNoneIsNotFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for _, ticket := range []id.Ticket{{}, id.Ticket(uuid.Max), id.New[id.Ticket](), id.NewIn[id.Ticket](3)} {
			got, err := f.queue.Own(t.Context(), ticket, id.New[id.User]())
			if got != nil || err != nil {
				t.Errorf("%s: %+v, %v", ticket, got, err)
			}
			if _, err := f.queue.Watch(t.Context(), ticket, id.New[id.User]()); fault.CodeOf(err) != fault.NotFound || errors.Is(err, redis.Nil) {
				t.Errorf("%s: %v", ticket, err)
			}
		}
	})
}
