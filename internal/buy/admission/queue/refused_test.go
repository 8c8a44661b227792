package queue_test

import (
	"testing"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// TestARedisThatRefusesConnectionsHasNoEmptyRooms: neither the step of the rooms nor a
// sign-out may take an unanswered read for a set without members.
func TestARedisThatRefusesConnectionsHasNoEmptyRooms(t *testing.T) {
	t.Parallel()
	for _, lockout := range testenv.Lockouts() {
		t.Run(lockout.Name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisServer(t)
			conn, err := redisconn.Open(t.Context(), testenv.LockableURL(t, server))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			f := newFixture(t, conn, "")
			session := id.New[id.Session]()
			ticket := f.enterFrom(id.New[id.User](), session)
			restore := lockout.Do(t, server)
			if counts, err := f.queue.Step(t.Context()); err == nil || !fault.IsTransient(err) {
				t.Errorf("the step did %v, error %v, want a transient one", counts, err)
			}
			if err := f.queue.SignedOut(t.Context(), session); err == nil || !fault.IsTransient(err) {
				t.Errorf("signing out: error %v, want a transient one", err)
			}
			restore()
			f.must(f.queue.SignedOut(t.Context(), session))
			if now := f.ticket(ticket); now.Status != queue.Left {
				t.Errorf("after the second sign-out the ticket is %s", now.Status)
			}
		})
	}
}
