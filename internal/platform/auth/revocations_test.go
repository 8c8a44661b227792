package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// known is the time within which all processes must know of an ended session or a changed
// user.
const known = time.Second

// stored are the ended sessions in Postgres.
type stored func() []id.Session

func (s stored) Ended(context.Context, time.Time) ([]id.Session, error) { return s(), nil }

// process returns one process's copy, running until the test ends.
func process(t *testing.T, conn *redisconn.Conn, prefix string, ended func() []id.Session) *auth.Revocations {
	t.Helper()
	blocking := conn.NewBlocking()
	cfg := auth.RevocationsConfig{
		Client: conn.Script, Tail: blocking, Prefix: prefix, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	}
	if ended != nil {
		cfg.Store = stored(ended)
	}
	r := auth.NewRevocations(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = blocking.Close()
	})
	select {
	case <-r.Ready():
	case <-time.After(testenv.Wait):
		t.Fatal("the view is not ready")
	}
	return r
}

// onBoth runs a test on real Redis and on the embedded Redis of the demo.
func onBoth(t *testing.T, test func(t *testing.T, conn *redisconn.Conn, prefix string)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, conn, prefix)
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		mini := miniredis.RunT(t)
		mini.ClockTTL(true)
		conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(mini.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		test(t, conn, "t:")
	})
}

func TestEndOfASessionIsKnownEverywhereWithinASecond(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		here, there := process(t, conn, prefix, nil), process(t, conn, prefix, nil)
		testenv.Promptly(t, known, func() time.Duration {
			session, other := id.New[id.Session](), id.New[id.Session]()
			socketClosed := make(chan struct{})
			there.OnRevoked(session, func() { close(socketClosed) })
			there.OnRevoked(other, func() { t.Error("the socket of another session was closed") })
			began := time.Now()
			if err := here.Revoke(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			if !here.Revoked(session) {
				t.Error("the process that ended the session does not know at once")
			}
			select {
			case <-socketClosed:
			case <-time.After(testenv.Wait):
				t.Fatal("the socket in the other process stays open")
			}
			if !there.Revoked(session) || there.Revoked(other) {
				t.Error("the other process has the wrong session ended")
			}
			return time.Since(began)
		})
	})
}

func TestProcessThatStartsLaterKnowsWhatWasEnded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		here := process(t, conn, prefix, nil)
		sessions := make([]id.Session, 250) // more than one entry
		for i := range sessions {
			sessions[i] = id.New[id.Session]()
		}
		if err := here.Revoke(t.Context(), sessions...); err != nil {
			t.Fatal(err)
		}
		later := process(t, conn, prefix, nil)
		for i, s := range sessions {
			if !later.Revoked(s) {
				t.Fatalf("session %d is not known as ended", i)
			}
		}
	})
}

func TestRecordFillsInWhatRedisLost(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := server.Conn()
	session, next := id.New[id.Session](), id.New[id.Session]()
	here := process(t, conn, "t:", nil)
	if err := here.Revoke(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	server.FlushAll()
	later := process(t, conn, "t:", func() []id.Session { return []id.Session{session} })
	if !later.Revoked(session) {
		t.Error("a process that started after the loss takes an ended session for a live one")
	}
	if err := later.Revoke(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return here.Revoked(next) }, "announcements after the loss are read")
}

func TestViewComesBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := server.Conn()
	here, there := process(t, conn, "t:", nil), process(t, conn, "t:", nil)
	server.Kill()
	session := id.New[id.Session]()
	if err := here.Revoke(t.Context(), session); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("Revoke without Redis: %v, want UNAVAILABLE", err)
	}
	if !here.Revoked(session) {
		t.Error("the own process must know, published or not")
	}
	server.Restart()
	testenv.Eventually(t, testenv.Wait, func() bool { return here.Revoke(t.Context(), session) == nil }, "can be published again")
	testenv.Eventually(t, testenv.Wait, func() bool { return there.Revoked(session) }, "is read again")
}

// mute is a client whose scripts fail with a timeout while on is set.
type mute struct {
	redis.UniversalClient
	on atomic.Bool
}

func (m *mute) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if m.on.Load() {
		return redis.NewCmdResult(nil, context.DeadlineExceeded)
	}
	return m.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// muted returns connections with a mute client.
func muted(conn *redisconn.Conn) (*redisconn.Conn, *mute) {
	m, c := &mute{UniversalClient: conn.Script}, *conn
	c.Script = m
	return &c, m
}

func TestEndOfASessionThatCouldNotBePublishedIsPublishedLater(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		spoiled, line := muted(conn)
		here, there := process(t, spoiled, prefix, nil), process(t, conn, prefix, nil)
		sessions := make([]id.Session, 250) // more than one entry
		for i := range sessions {
			sessions[i] = id.New[id.Session]()
		}
		line.on.Store(true)
		if err := here.Revoke(t.Context(), sessions...); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("Revoke without an answer: %v, want UNAVAILABLE", err)
		}
		line.on.Store(false)
		testenv.Eventually(t, testenv.Wait, func() bool {
			return !slices.ContainsFunc(sessions, func(s id.Session) bool { return !there.Revoked(s) })
		}, "the other process knows all sessions that were ended")
	})
}

func TestWhatAnEndedSessionHoldsIsReleasedOnceThatCanBeDone(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	released := make(chan id.Session, 10)
	var tries atomic.Int32
	r := auth.NewRevocations(auth.RevocationsConfig{
		Client: conn.Script, Tail: conn.NewBlocking(), Prefix: prefix, Keep: time.Minute, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
		Release: func(_ context.Context, sessions ...id.Session) error {
			if tries.Add(1) < 3 {
				return errors.New("away")
			}
			for _, s := range sessions {
				released <- s
			}
			return nil
		},
	})
	session := id.New[id.Session]()
	if err := r.Revoke(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	select {
	case got := <-released:
		if got != session {
			t.Errorf("released %s", got)
		}
	case <-time.After(testenv.Wait):
		t.Error("not released")
	}
	cancel()
	running.Wait()
}

func TestEndOfASessionIsNotPublishedOnceItDoesNotMatter(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	spoiled, line := muted(conn)
	now, blocking := clock.NewFake(noon), conn.NewBlocking()
	r := auth.NewRevocations(auth.RevocationsConfig{
		Client: spoiled.Script, Tail: blocking, Prefix: prefix, Keep: time.Minute, Clock: now, Log: slog.New(slog.DiscardHandler),
	})
	line.on.Store(true)
	if err := r.Revoke(t.Context(), id.New[id.Session]()); err == nil {
		t.Fatal("Revoke without an answer is no error")
	}
	now.Advance(time.Minute + time.Second)
	line.on.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	<-r.Ready() // one iteration of Run is complete
	cancel()
	running.Wait()
	_ = blocking.Close()
	if keys, err := conn.Cmd.Keys(t.Context(), prefix+"*").Result(); err != nil || len(keys) != 0 {
		t.Errorf("published: %v, %v", keys, err)
	}
}

func TestRecordRestoresAfterAnOutageWhatWasNotPublished(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	var record atomic.Pointer[[]id.Session]
	record.Store(new([]id.Session))
	r := process(t, server.Conn(), "t:", func() []id.Session { return *record.Load() })
	server.Kill()
	session := id.New[id.Session]()
	record.Store(&[]id.Session{session}) // by a process that ended before it could publish
	server.Restart()
	testenv.Eventually(t, testenv.Wait, func() bool { return r.Revoked(session) }, "the record is asked again")
}

func TestAnUnreadableEntryBlocksNoOther(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		here, there := process(t, conn, prefix, nil), process(t, conn, prefix, nil)
		session := id.New[id.Session]()
		if err := here.Revoke(t.Context(), id.New[id.Session]()); err != nil {
			t.Fatal(err)
		}
		keys, err := conn.Cmd.Keys(t.Context(), prefix+"*").Result()
		if err != nil || len(keys) != 1 {
			t.Fatalf("keys %v, %v; want the one stream", keys, err)
		}
		for _, values := range []map[string]any{
			{"kind": "sessions", "ids": "not-an-id"},
			{"kind": "weather", "ids": session.String()},
			{"x": "y"},
		} {
			if err := conn.Cmd.Do(t.Context(), flatten(keys[0], values)...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := here.Revoke(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, testenv.Wait, func() bool { return there.Revoked(session) }, "the entry behind is applied")
	})
}

func flatten(stream string, values map[string]any) []any {
	args := []any{"XADD", stream, "*"}
	for k, v := range values {
		args = append(args, k, v)
	}
	return args
}

func TestChangeOfAUserIsPublished(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		here, there := process(t, conn, prefix, nil), process(t, conn, prefix, nil)
		changes := make(chan id.User, 8)
		stop := there.OnUserChanged(func(u id.User) { changes <- u })
		defer stop()
		testenv.Promptly(t, known, func() time.Duration {
			user, began := id.New[id.User](), time.Now()
			if err := here.UserChanged(t.Context(), user); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-changes:
				if got != user {
					t.Errorf("change of %s, want %s", got, user)
				}
			case <-time.After(testenv.Wait):
				t.Error("not published")
			}
			return time.Since(began)
		})
	})
}

func TestRegistrationsAreCalledOnceOrTakenBack(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	r := process(t, conn, prefix, nil)
	session := id.New[id.Session]()
	var called, takenBack, late atomic.Int32
	for range 100 {
		r.OnRevoked(session, func() { called.Add(1) })
	}
	unregister := r.OnRevoked(session, func() { takenBack.Add(1) })
	unregister()
	unregister() // twice is harmless
	for range 3 {
		if err := r.Revoke(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	r.OnRevoked(session, func() { late.Add(1) })()
	if called.Load() != 100 || takenBack.Load() != 0 || late.Load() != 1 {
		t.Errorf("called %d of 100, %d taken back, %d late; want 100, 0, 1", called.Load(), takenBack.Load(), late.Load())
	}
}

func TestOldAnnouncementsAreTrimmed(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	mini.SetTime(noon)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(mini.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := auth.NewRevocations(auth.RevocationsConfig{Client: conn.Script, Prefix: "t:", Keep: time.Minute, Clock: clock.System{}})
	for range 3 {
		if err := r.Revoke(t.Context(), id.New[id.Session]()); err != nil {
			t.Fatal(err)
		}
	}
	mini.SetTime(noon.Add(50 * time.Second))
	if err := r.Revoke(t.Context(), id.New[id.Session]()); err != nil {
		t.Fatal(err)
	}
	mini.SetTime(noon.Add(90 * time.Second)) // the first three have expired
	if err := r.Revoke(t.Context(), id.New[id.Session]()); err != nil {
		t.Fatal(err)
	}
	stream := mini.Keys()[0]
	if n := conn.Cmd.XLen(t.Context(), stream).Val(); n != 2 {
		t.Errorf("%d announcements are kept, want the 2 of the last minute", n)
	}
	mini.SetTime(noon.Add(3 * time.Minute))
	if keys := mini.Keys(); len(keys) != 0 {
		t.Errorf("a quiet stream stays: %v", keys)
	}
}

func TestMain(m *testing.M) { testenv.Main(m) }
