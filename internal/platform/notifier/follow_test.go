package notifier

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// record is a state stored in a database.
type record struct {
	Text string `json:"text"`
}

// store holds the state that loads return.
type store struct {
	state atomic.Pointer[State[record]]
	loads atomic.Int64
	fail  atomic.Bool
}

func (s *store) set(revision int64, text string, terminal bool) {
	s.state.Store(&State[record]{Value: record{Text: text}, Revision: revision, Terminal: terminal})
}

func (s *store) load(context.Context) (State[record], error) {
	s.loads.Add(1)
	if s.fail.Load() {
		return State[record]{}, errors.New("database away")
	}
	return *s.state.Load(), nil
}

func follow(t testing.TB, ctx context.Context, h *Hub, s *store) <-chan State[record] {
	t.Helper()
	states, err := Follow(ctx, h, "k", s.load)
	if err != nil {
		t.Fatal(err)
	}
	return states.States()
}

func want(t testing.TB, got State[record], revision int64, text string, snapshot bool) {
	t.Helper()
	if got.Revision != revision || got.Value.Text != text || got.Snapshot != snapshot {
		t.Fatalf("got %+v, want revision %d %q, snapshot %v", got, revision, text, snapshot)
	}
}

// quiet checks that no state arrives for a while, in the time of the bubble.
func quiet(t testing.TB, states <-chan State[record], during time.Duration) {
	t.Helper()
	select {
	case s, open := <-states:
		t.Fatalf("got %+v, open %v", s, open)
	case <-time.After(during):
	}
}

func TestASnapshotComesFirstThenOnlyHigherRevisionsThenTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(3, "three", false)
		states := follow(t, t.Context(), h, s)
		want(t, <-states, 3, "three", true)
		h.Publish(Event{Key: "k", Revision: 2, Value: record{"two"}})
		h.Publish(Event{Key: "k", Revision: 3, Value: record{"three again"}})
		quiet(t, states, time.Second)
		h.Publish(Event{Key: "k", Revision: 5, Value: record{"five"}})
		want(t, <-states, 5, "five", false)
		h.Publish(Event{Key: "k", Revision: 4, Value: record{"four"}})
		quiet(t, states, time.Second)
		s.set(6, "end", true)
		h.Publish(Event{Key: "k", Revision: 6, Terminal: true, Value: record{"end"}})
		end := <-states
		want(t, end, 6, "end", false)
		if _, open := <-states; open || !end.Terminal {
			t.Error("goes on after the end")
		}
		if h.Followers() != 0 {
			t.Error("still follows")
		}
		if n := s.loads.Load(); n != 1 {
			t.Errorf("%d loads; the events carried all", n)
		}
	})
}

func TestFollowingAnEndedStateGivesOneSnapshotAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(2, "end", true)
		states := follow(t, t.Context(), h, s)
		<-time.After(time.Minute) // of the bubble: the receiver is slow
		want(t, <-states, 2, "end", true)
		if _, open := <-states; open || h.Followers() != 0 {
			t.Error("goes on")
		}
	})
}

func TestNoChangeFallsBetweenLoadingAndJoining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "submitted", false)
		follower, err := Follow(t.Context(), h, "k", func(ctx context.Context) (State[record], error) {
			old, err := s.load(ctx)
			// Committed and published after the row was read, before Follow goes on.
			s.set(2, "succeeded", true)
			h.Publish(Event{Key: "k", Revision: 2, Terminal: true, Value: record{"succeeded"}})
			return old, err
		})
		if err != nil {
			t.Fatal(err)
		}
		states := follower.States()
		began := time.Now()
		var last State[record]
		for state := range states {
			last = state
		}
		if last.Value.Text != "succeeded" || time.Since(began) > 0 {
			t.Errorf("%+v after %v", last, time.Since(began))
		}
	})
}

func TestALostEventIsFoundWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "one", false)
		states := follow(t, t.Context(), h, s)
		want(t, <-states, 1, "one", true)
		quiet(t, states, 20*time.Second) // loads, but nothing changed
		s.set(2, "two", true)
		began := time.Now()
		want(t, <-states, 2, "two", false)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("found after %v", took)
		}
		if _, open := <-states; open {
			t.Error("goes on")
		}
	})
}

func TestASlowReceiverGetsTheLastState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "one", false)
		states := follow(t, t.Context(), h, s)
		for i := int64(2); i < 100; i++ {
			h.Publish(Event{Key: "k", Revision: i, Value: record{"middle"}})
			synctest.Wait()
		}
		// The snapshot was not received yet: the first state is still a snapshot.
		want(t, <-states, 99, "middle", true)
		for i := int64(100); i < 200; i++ {
			h.Publish(Event{Key: "k", Revision: i, Value: record{"middle"}})
			synctest.Wait()
		}
		s.set(200, "end", true)
		h.Publish(Event{Key: "k", Revision: 200, Terminal: true, Value: record{"end"}})
		synctest.Wait()
		h.Publish(Event{Key: "k", Revision: 201, Value: record{"after the end"}})
		synctest.Wait()
		want(t, <-states, 200, "end", false)
		if _, open := <-states; open {
			t.Error("goes on")
		}
	})
}

func TestTheEndOfTheContextEndsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "one", false)
		ctx, cancel := context.WithCancel(t.Context())
		received, waiting := follow(t, ctx, h, s), follow(t, ctx, h, s)
		want(t, <-received, 1, "one", true)
		cancel()
		synctest.Wait()
		for _, states := range []<-chan State[record]{received, waiting} {
			if _, open := <-states; open {
				t.Error("the channel is open")
			}
		}
		if h.Followers() != 0 {
			t.Error("still follows")
		}
	})
}

func TestAnEventWithoutAValueIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "one", false)
		states := follow(t, t.Context(), h, s)
		want(t, <-states, 1, "one", true)
		for i, value := range []any{nil, "another type", json.RawMessage(`{"text":`), json.RawMessage(`[1]`)} {
			revision := int64(i + 2)
			s.set(revision, "read", false)
			before := time.Now()
			h.Publish(Event{Key: "k", Revision: revision, Value: value})
			want(t, <-states, revision, "read", false)
			if time.Since(before) > 0 {
				t.Errorf("%v: only at the next round", value)
			}
		}
		h.Publish(Event{Key: "k", Revision: 9, Terminal: true, Value: json.RawMessage(`{"text":"decoded"}`)})
		want(t, <-states, 9, "decoded", false)
		for range states {
			t.Error("goes on")
		}
	})
}

func TestEventsArriveDuringASlowLoadWhichIsThenRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "one", false)
		slow := make(chan struct{})
		var slowed atomic.Bool
		follower, err := Follow(t.Context(), h, "k", func(ctx context.Context) (State[record], error) {
			state, err := s.load(ctx)
			if slowed.Load() {
				<-slow
			}
			return state, err
		})
		if err != nil {
			t.Fatal(err)
		}
		states := follower.States()
		want(t, <-states, 1, "one", true)
		slowed.Store(true)
		h.Publish(Event{Key: "k", Revision: 2}) // starts a load that will return revision 1
		synctest.Wait()
		h.Publish(Event{Key: "k", Revision: 3, Value: record{"three"}})
		want(t, <-states, 3, "three", false)
		s.set(4, "four", true)
		h.Publish(Event{Key: "k", Revision: 4}) // after the running load has read
		synctest.Wait()
		slowed.Store(false)
		close(slow)
		want(t, <-states, 4, "four", false)
		for range states {
			t.Error("goes on")
		}
	})
}

// lines counts what is written.
type lines struct{ atomic.Int64 }

func (l *lines) Write(line []byte) (int, error) {
	l.Add(1)
	return len(line), nil
}

func TestALoadThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failures lines
		h, s := NewHub(Options{Log: slog.New(slog.NewTextHandler(&failures, nil))}), &store{}
		s.set(1, "one", false)
		var panics atomic.Bool
		follower, err := Follow(t.Context(), h, "k", func(ctx context.Context) (State[record], error) {
			if panics.Load() {
				panic("trouble")
			}
			return s.load(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		states := follower.States()
		want(t, <-states, 1, "one", true)
		s.fail.Store(true)
		s.set(2, "two", true)
		quiet(t, states, 20*time.Second)
		panics.Store(true)
		quiet(t, states, 20*time.Second)
		panics.Store(false)
		s.fail.Store(false)
		want(t, <-states, 2, "two", false)
		for range states {
			t.Error("goes on")
		}
		if n := failures.Load(); n < 8 {
			t.Errorf("%d failures reported", n)
		}
	})
}

func TestALoadThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := NewHub(Options{}), &store{}
		s.set(1, "one", false)
		var hang atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		follower, err := Follow(ctx, h, "k", func(ctx context.Context) (State[record], error) {
			if hang.Load() {
				<-ctx.Done()
				return State[record]{}, ctx.Err()
			}
			return s.load(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		states := follower.States()
		want(t, <-states, 1, "one", true)
		hang.Store(true)
		quiet(t, states, 6*time.Second)
		hang.Store(false)
		s.set(2, "two", false)
		want(t, <-states, 2, "two", false)
		hang.Store(true)
		h.Publish(Event{Key: "k", Revision: 3})
		synctest.Wait()
		cancel() // while a load is running
		synctest.Wait()
		if _, open := <-states; open {
			t.Error("the channel is open")
		}
	})
}

func TestFollowReturnsTheErrorOfItsFirstLoad(t *testing.T) {
	t.Parallel()
	h, s := NewHub(Options{}), &store{}
	s.fail.Store(true)
	if states, err := Follow(t.Context(), h, "k", s.load); err == nil || states != nil {
		t.Errorf("%v, %v", states, err)
	}
	if h.Followers() != 0 {
		t.Error("still follows")
	}
	full := NewHub(Options{Total: 1})
	subscribe(t, full, "k")
	if _, err := Follow(t.Context(), full, "k", s.load); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}
