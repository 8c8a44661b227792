package system_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

type frame = apiclient.Frame

// socket is an open graphql-transport-ws connection.
type socket struct {
	t    testing.TB
	ctx  context.Context // the bound of one test
	conn *apiclient.Socket

	frames chan frame // those read that are no ping; closed at the end
	over   error      // how the socket ended; to be read after frames is closed
}

// dial opens a socket with a token. Its frames are read in the background, so that pings
// are answered while the test does something else.
func (s *site) dial(token string) *socket {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*testenv.Wait)
	s.t.Cleanup(cancel)
	conn, err := s.client(token).Dial(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	k := &socket{t: s.t, ctx: ctx, conn: conn, frames: make(chan frame, 1000)}
	go k.run()
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return k
}

func (k *socket) send(f frame) {
	k.t.Helper()
	if err := wsjson.Write(k.ctx, k.conn.Conn, f); err != nil {
		k.t.Fatal(err)
	}
}

// read returns the next frame that is not a ping.
func (k *socket) read() frame {
	k.t.Helper()
	var f frame
	if err := k.next(&f); err != nil {
		k.t.Fatal(err)
	}
	return f
}

// next is read that returns the end of the socket as an error.
func (k *socket) next(f *frame) error {
	got, ok := <-k.frames
	if !ok {
		return k.over
	}
	*f = got
	return nil
}

// run reads the socket until its end.
func (k *socket) run() {
	defer close(k.frames)
	for {
		var f frame
		if f, k.over = k.conn.Next(k.ctx); k.over != nil {
			return
		}
		select {
		case k.frames <- f:
		case <-k.ctx.Done():
			k.over = k.ctx.Err()
			return
		}
	}
}

// taskEvent is an event of orderTaskStatus.
type taskEvent struct {
	Kind      string
	OrderTask struct {
		Status   string
		Delayed  bool
		Revision int
		Order    *struct{ ID, Status string }
		Failure  *struct{ Code string }
	}
}

// follow subscribes to a task under a stream id.
func (k *socket) follow(streamID, taskID string) {
	k.t.Helper()
	payload, _ := json.Marshal(map[string]any{ // strings
		"query":     `subscription($t: ID!) { orderTaskStatus(orderTaskId: $t) { kind orderTask { status delayed revision order { id status } failure { code } } } }`,
		"variables": map[string]string{"t": taskID},
	})
	k.send(frame{ID: streamID, Type: "subscribe", Payload: payload})
}

// event reads the next event of a task; done at the end of the stream.
func (k *socket) event() (e taskEvent, done bool) {
	k.t.Helper()
	f := k.read()
	if f.Type == "complete" {
		return e, true
	}
	if f.Type != "next" {
		k.t.Fatalf("frame %s %s", f.Type, f.Payload)
	}
	var payload struct {
		Data struct{ OrderTaskStatus taskEvent }
	}
	if err := json.Unmarshal(f.Payload, &payload); err != nil {
		k.t.Fatal(err)
	}
	return payload.Data.OrderTaskStatus, false
}

// end reads a task's stream to its end: a snapshot first, increasing revisions, one
// terminal state as the last event.
func (k *socket) end() taskEvent {
	k.t.Helper()
	last := taskEvent{}
	for n := 0; ; n++ {
		e, done := k.event()
		if done {
			break
		}
		if (n == 0) != (e.Kind == "SNAPSHOT") {
			k.t.Errorf("event %d is a %s", n, e.Kind)
		}
		if e.OrderTask.Revision <= last.OrderTask.Revision {
			k.t.Errorf("revision %d after %d", e.OrderTask.Revision, last.OrderTask.Revision)
		}
		last = e
	}
	return last
}

func TestABuyerAlwaysSeesTheEndOfTheAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 20, Stock: 20, PathTTL: 10 * time.Minute})
	for i, u := range made.Users {
		k := s.dial(u.AccessToken) // opened before the order, so that the stream starts at once
		p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.why() != "" {
			t.Fatalf("placed: %+v %v", p, err)
		}
		if i%2 == 1 { // a buyer whose connection breaks and who reconnects
			k.follow("first", p.OrderTask.ID)
			if e, _ := k.event(); e.Kind != "SNAPSHOT" {
				t.Errorf("first event %+v", e)
			}
			_ = k.conn.CloseNow()
			k = s.dial(u.AccessToken)
		}
		k.follow("s", p.OrderTask.ID)
		last := k.end()
		if last.OrderTask.Status != "SUCCEEDED" || last.OrderTask.Order == nil || last.OrderTask.Order.Status != "PENDING_PAYMENT" {
			t.Errorf("the stream ended with %+v", last)
		}
		var poll struct{ OrderTask struct{ Status string } }
		s.ask(u.AccessToken, `query($t: ID!) { orderTask(id: $t) { status } }`, map[string]any{"t": p.OrderTask.ID}).into(t, &poll)
		if poll.OrderTask.Status != last.OrderTask.Status {
			t.Errorf("the poll says %s, the push %s", poll.OrderTask.Status, last.OrderTask.Status)
		}
		_ = k.conn.Close(websocket.StatusNormalClosure, "")
	}
	s.drained(made.SaleID, 20)
}

// No worker runs: the buyer and the operators learn that the order is delayed.
func TestAFollowerLearnsOfADelayAndWaitsForAWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, _ := s.open("api", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: 10 * time.Minute})
	u := made.Users[0]
	p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	k := s.dial(u.AccessToken)
	k.follow("s", p.OrderTask.ID)
	e, _ := k.event()
	if e.Kind != "SNAPSHOT" || e.OrderTask.Status != "SUBMITTED" {
		t.Fatalf("before any worker: %+v", e)
	}
	if !e.OrderTask.Delayed { // always on a machine that is fast enough
		if e, _ = k.event(); e.Kind != "UPDATE" || e.OrderTask.Status != "SUBMITTED" || !e.OrderTask.Delayed {
			t.Fatalf("after ten seconds without a worker: %+v", e)
		}
	}
	late := regexp.MustCompile(`\nseckill_stream_oldest_seconds\{.*\} [1-9][0-9]`)
	testenv.Eventually(t, testenv.Wait, func() bool { return late.MatchString(metrics(t, a)) }, "no metric shows the delay")
	api := s.url
	s.start("worker") // another process: its events arrive over the bus
	s.url = api
	if e, _ = k.event(); e.Kind != "UPDATE" || e.OrderTask.Status != "SUCCEEDED" {
		t.Errorf("after the worker came: %+v", e)
	}
	if _, done := k.event(); !done {
		t.Error("the stream goes on after the end")
	}
	_ = k.conn.Close(websocket.StatusNormalClosure, "")
}

func TestTheAttemptOfAnotherUserCannotBeFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 2, PathTTL: 10 * time.Minute})
	p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	k := s.dial(made.Users[1].AccessToken)
	k.follow("s", p.OrderTask.ID)
	f := k.read()
	if !strings.Contains(string(f.Payload), "NOT_FOUND") {
		t.Errorf("frame %s %s", f.Type, f.Payload)
	}
	_ = k.conn.Close(websocket.StatusNormalClosure, "")
}
