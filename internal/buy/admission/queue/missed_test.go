package queue_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// expireTurns lets the path tokens of admitted tickets expire now. A used one stays used.
func (f *fixture) expireTurns(tickets ...*queue.Ticket) {
	f.t.Helper()
	ctx, till := f.t.Context(), time.Now().Add(-time.Second).UnixMilli()
	for _, ticket := range tickets {
		over := redis.Z{Score: float64(till), Member: ticket.User.String()}
		f.must(f.redis.HSet(ctx, f.keys.Ticket(f.shard, ticket.ID), "expires", till).Err())
		f.must(f.redis.ZAddXX(ctx, f.keys.Permits(f.shard, f.item), over).Err())
		f.must(f.redis.ZAddXX(ctx, f.keys.Admissions(f.shard, f.item), over).Err())
	}
}

// admitted returns tickets of new buyers, admitted.
func (f *fixture) admitted(n int) []*queue.Ticket {
	f.t.Helper()
	tickets := make([]*queue.Ticket, n)
	for i := range tickets {
		tickets[i] = f.enter(id.New[id.User]())
	}
	f.step()
	for i, ticket := range tickets {
		if tickets[i] = f.ticket(ticket); tickets[i].Path == nil {
			f.t.Fatalf("not admitted: %+v", tickets[i])
		}
	}
	return tickets
}

// reported returns the buyers whose tickets brought nothing, in order, and forgets them.
func (f *fixture) reported() []id.User {
	f.t.Helper()
	var users []id.User
	for _, u := range f.unserved {
		if u.Why != fault.PathInvalid || u.Sale != f.sale || u.Item != f.item {
			f.t.Errorf("reported %+v", u)
		}
		users = append(users, u.User)
	}
	f.unserved = nil
	return users
}

// missed requires that exactly one buyer is reported by the next steps, and that the
// ticket says why it ended.
func (f *fixture) missed(ticket *queue.Ticket, when string) {
	f.t.Helper()
	f.step()
	f.step()
	if got := f.reported(); !slices.Equal(got, []id.User{ticket.User}) {
		f.t.Errorf("%s: reported %v, want %s", when, got, ticket.User)
	}
	if got := f.ticket(ticket); got.Ended != fault.PathInvalid || got.Path != nil {
		f.t.Errorf("%s: the ticket reads %+v", when, got)
	}
}

func TestAnAdmissionThatExpiresUnusedIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]struct {
		fields []any
		rules  queue.Rules
		status queue.Status
	}{
		"open":                   {rules: queue.Rules{PerMille: 1000}, status: queue.Admitted},
		"open without a ratio":   {status: queue.Admitted},
		"sold out":               {fields: []any{"stock", 0}, rules: queue.Rules{PerMille: 1000}, status: queue.Admitted},
		"paused":                 {fields: []any{"gate", "paused"}, rules: queue.Rules{PerMille: 1000}, status: queue.Admitted},
		"over":                   {fields: []any{"gate", "ended"}, rules: queue.Rules{PerMille: 1000, Over: true}, status: queue.Closed},
		"units for the waitlist": {fields: []any{"line", time.Now().Add(time.Hour).UnixMilli()}, rules: queue.Rules{PerMille: 1000}, status: queue.Admitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, f *fixture) {
				f.rules.Store(&queue.Rules{PerMille: 1000})
				all := f.admitted(3)
				late, buyer, early := all[0], all[1], all[2]
				if !f.buy(buyer) {
					t.Fatal("a buyer bought nothing")
				}
				f.expireTurns(late, buyer)
				if len(state.fields) > 0 {
					f.set(state.fields...)
				}
				f.rules.Store(&state.rules)
				if got := f.ticket(late); got.Status != state.status || got.Ended != fault.PathInvalid || got.Path != nil {
					t.Errorf("before the step: %+v", got)
				}
				f.missed(late, "no buyer waits")
				for _, ticket := range []*queue.Ticket{buyer, early} {
					if got := f.ticket(ticket); got.Ended != "" {
						t.Errorf("another buyer reads %+v", got)
					}
				}
				if rooms := f.redis.SCard(t.Context(), f.keys.WaitingRooms(f.shard)).Val(); rooms != 1 {
					t.Errorf("%d rooms beside an unexpired admission", rooms)
				}
				f.expireTurns(early)
				f.missed(early, "later")
				if rooms := f.redis.SCard(t.Context(), f.keys.WaitingRooms(f.shard)).Val(); rooms != 0 || f.queue.Busy() {
					t.Errorf("%d rooms left", rooms)
				}
			})
		})
	}
}

func TestBuyersWhoComeBackAreReportedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		all := f.admitted(3)
		f.expireTurns(all...)
		f.issue(all[0].User) // both remove the permit before the step does
		again := f.enter(all[1].User)
		f.step()
		f.step()
		want := []id.User{all[0].User, all[1].User, all[2].User}
		if got := f.reported(); len(got) != len(want) || slices.ContainsFunc(want, func(u id.User) bool { return !slices.Contains(got, u) }) {
			t.Errorf("reported %v, want %v", got, want)
		}
		for _, ticket := range all {
			if got := f.ticket(ticket); got.Ended != fault.PathInvalid {
				t.Errorf("the former ticket reads %+v", got)
			}
		}
		if got := f.ticket(again); got.Status != queue.Admitted || got.Ended != "" || !f.buy(got) {
			t.Errorf("the new ticket reads %+v", got)
		}
		renewed := f.admitted(1)[0]
		f.issue(renewed.User) // a second token in place of the first
		f.must(f.redis.ZAddXX(t.Context(), f.keys.Permits(f.shard, f.item), redis.Z{Score: 1, Member: renewed.User.String()}).Err())
		f.must(f.redis.ZAddXX(t.Context(), f.keys.Admissions(f.shard, f.item), redis.Z{Score: 1, Member: renewed.User.String()}).Err())
		f.step()
		if got := f.reported(); !slices.Equal(got, []id.User{renewed.User}) {
			t.Errorf("a renewed token: reported %v", got)
		}
	})
}

func TestAdmissionsThatTheBuyerEndedAreNotReported(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		all := f.admitted(2)
		left, cancelled := all[0], all[1]
		if _, err := f.queue.Leave(t.Context(), left.ID, left.User); err != nil {
			t.Fatal(err)
		}
		if !f.buy(cancelled) {
			t.Fatal("bought nothing")
		}
		f.must(f.redis.HDel(t.Context(), f.keys.Reservations(f.shard, f.item), cancelled.User.String()).Err()) // cancelled at once
		f.expireTurns(left, cancelled)
		f.step()
		if got := f.reported(); len(got) != 0 {
			t.Errorf("reported %v", got)
		}
		rebuilt := f.admitted(1)[0]
		f.build(8) // takes the path tokens away
		f.expireTurns(rebuilt)
		f.missed(rebuilt, "the gate was rebuilt, and the buyer did not come back")
	})
}

func TestProcessesReportAnAdmissionOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const buyers, processes = 250, 4 // more than one pass
		f.set("stock", buyers, "total", buyers)
		f.expireTurns(f.admitted(buyers)...)
		var done sync.WaitGroup
		for range processes {
			done.Go(func() {
				if _, err := f.queue.Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		got := f.reported()
		distinct := map[id.User]bool{}
		for _, user := range got {
			distinct[user] = true
		}
		if len(got) != buyers || len(distinct) != buyers {
			t.Errorf("%d reports of %d buyers, want %d", len(got), len(distinct), buyers)
		}
	})
}
