package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// Variables that make a process of this test binary a sender.
const (
	senderVariable = "SECKILL_TEST_SENDER"
	aheadVariable  = "SECKILL_TEST_SENDER_AHEAD"
)

// ahead is a clock that is ahead of the system's, so that leases of a process that was
// killed have ended.
type ahead struct{ by time.Duration }

// Now returns the time.
func (a ahead) Now() time.Time { return time.Now().Add(a.by).UTC() }

// runSender sends events until the process is killed.
func runSender(url string) {
	by, err := time.ParseDuration(os.Getenv(aheadVariable))
	if err == nil {
		err = send(url, ahead{by})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func send(url string, c ahead) error {
	db, err := postgres.Open(context.Background(), postgres.Options{URL: url, MaxConns: 4})
	if err != nil {
		return err
	}
	keys, err := auth.NewKeys(auth.Key{ID: "1", Secret: []byte(strings.Repeat("k", 32))})
	if err != nil {
		return err
	}
	service := webhook.New(webhook.Config{DB: db, Keys: keys, Networks: []netip.Prefix{loopback}, Clock: c, Log: quiet})
	return service.Run(context.Background())
}

func TestAKilledSenderLosesNothing(t *testing.T) {
	t.Parallel()
	const subjects, each, kills = 40, 5, 3
	url := testdb.UnflushedPostgresURL(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	e := setupOn(t, db)
	r := newReceiver(t)
	e.register(r)
	reached := make(chan struct{}, subjects*each*4)
	r.mu.Lock()
	r.sleep = func(*http.Request) { reached <- struct{}{} }
	r.mu.Unlock()
	for n := range each {
		for i := range subjects {
			e.fact(webhook.OrderPlaced, fmt.Sprintf("ord_%02d", i), n)
		}
	}
	for kill := range kills {
		stop := startSender(t, url, time.Duration(kill)*2*webhook.Lease)
		for range 20 {
			wait(t, reached)
		}
		stop()
	}
	startSender(t, url, kills*2*webhook.Lease)
	// A signal comes before its event is recorded: the last one is no sign of all events.
	testenv.Eventually(t, testenv.Wait, func() bool { return len(unique(r.events())) == subjects*each }, "not all events arrived")
	got := r.events()
	for i := range subjects {
		subject := fmt.Sprintf("ord_%02d", i)
		numbers := slices.Compact(of(got, subject)) // a repeated event follows itself at once
		if !slices.Equal(numbers, []int{0, 1, 2, 3, 4}) {
			t.Errorf("received %v of %s, want all in their order", numbers, subject)
		}
	}
	t.Logf("%d requests for %d events through %d kills", r.attempts(), subjects*each, kills)
}

func wait(t testing.TB, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(testenv.Wait):
		t.Fatal("no delivery arrived")
	}
}

func unique(events []received) map[string]bool {
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
	}
	return ids
}

// startSender starts a process that sends until the test ends, and returns a function
// that kills it before.
func startSender(t testing.TB, url string, by time.Duration) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), senderVariable+"="+url, aheadVariable+"="+by.String())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	return kill
}

func TestManyProcessesShareTheWork(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t)
	e.register(r)
	const events, processes = 300, 4
	reached := make(chan struct{}, events)
	r.mu.Lock()
	r.sleep = func(*http.Request) { reached <- struct{}{} }
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range processes {
		service := newService(t, e.db, e.clock, nil)
		all.Go(func() { _ = service.Run(ctx) })
	}
	for i := range events {
		e.fact(webhook.OrderPlaced, fmt.Sprintf("ord_%d", i%50), i)
	}
	for range events {
		wait(t, reached)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return len(r.events()) == events }, "not all events arrived")
	cancel()
	all.Wait()
	if n := len(unique(r.events())); n != events || r.attempts() != events {
		t.Errorf("%d requests delivered %d of %d events, want each once", r.attempts(), n, events)
	}
}
