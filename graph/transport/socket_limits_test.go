package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"seckill/graph/transport"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestTokenExpiryClosesWithoutComplete(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	parts := 0 // fewer on a slow machine
	life := 500 * time.Millisecond
	for i := 0; i < 20 || parts == 0 && life < testenv.Wait; i++ {
		if i >= 20 {
			life *= 2
		}
		c := f.dial(dialOptions{})
		c.init("user:" + uuid.NewString() + ":" + life.String())
		ack, err := c.read()
		if websocket.CloseStatus(err) == 4403 {
			continue // it expired before it was acknowledged
		}
		if err != nil || ack != `{"type":"connection_ack"}` {
			t.Fatalf("got %q, %v", ack, err)
		}
		for i := range 5 {
			_ = c.conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"id":"%d","type":"subscribe","payload":{"query":"subscription{idle}"}}`, i)) // it may be closed
		}
		for {
			text, err := c.read()
			if ce, closed := errors.AsType[websocket.CloseError](err); closed {
				if ce.Code != 4403 || ce.Reason != "Token expired" {
					t.Errorf("closed with %v", ce)
				}
				break
			}
			if err != nil || !strings.Contains(text, `{"idle":1}`) {
				t.Fatalf("got %q, %v", text, err)
			}
			parts++
		}
	}
	if parts == 0 {
		t.Error("no stream began")
	}
}

func TestSignOutClosesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSessions()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{Watch: s.watch}})
	mine, other := f.open("user:mine"), f.open("user:other")
	mine.subscribe("1", `subscription{idle}`)
	mine.expectPart(`{"idle":1}`)
	s.end("mine")
	mine.expectClose(4403, "Session ended")
	other.send(`{"type":"ping"}`)
	other.expect(`{"type":"pong"}`)
	late := f.dial(dialOptions{}) // the session has ended before connection_ack
	late.init("user:mine")
	late.skipUntilClose(4403, "Session ended")
	_ = other.conn.Close(1000, "")
	f.eventually("watches are taken back", func() bool { return s.count() == 0 })
}

// sessions notifies watchers of sign-outs, as the product does.
type sessions struct {
	mu      sync.Mutex
	ended   map[id.Session]bool
	watches map[id.Session]map[int]func()
	next    int
}

func newSessions() *sessions {
	return &sessions{ended: map[id.Session]bool{}, watches: map[id.Session]map[int]func(){}}
}

func sessionOf(name string) id.Session {
	return id.Session(uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)))
}

func (s *sessions) watch(session id.Session, ended func()) (unwatch func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[session] {
		ended()
		return func() {}
	}
	if s.watches[session] == nil {
		s.watches[session] = map[int]func(){}
	}
	s.next++
	n := s.next
	s.watches[session][n] = ended
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches[session], n)
	}
}

func (s *sessions) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := sessionOf(name)
	s.ended[session] = true
	for _, ended := range s.watches[session] {
		ended()
	}
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, w := range s.watches {
		n += len(w)
	}
	return n
}

func TestSocketsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	var open []*wsClient
	for range 3 {
		c := f.open("user:many")
		c.subscribe("1", `subscription{idle}`)
		c.expectPart(`{"idle":1}`)
		open = append(open, c)
	}
	c := f.dial(dialOptions{})
	c.init("user:many")
	c.expectClose(1013, "Too many sockets") // clients try again after it, and not after 4429
	f.open("user:else")
	_ = open[0].conn.Close(1000, "")
	f.eventually("the socket is forgotten", func() bool { return f.sockets.Count() == 3 })
	f.open("user:many")
}

// A user's fourth page gets the socket of one that follows nothing.
func TestASocketThatIsNotUsedMakesRoomForTheNextOfItsUser(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	var open []*wsClient
	for range 3 {
		open = append(open, f.open("user:many"))
	}
	open[0].subscribe("1", `subscription{idle}`)
	open[0].expectPart(`{"idle":1}`)
	other := f.open("user:else")
	next := f.open("user:many")
	open[1].expectClose(1013, "Too many sockets")
	for _, c := range []*wsClient{open[2], other, next} {
		c.subscribe("1", `subscription{idle}`)
		c.expectPart(`{"idle":1}`)
	}
	f.eventually("the closed socket is forgotten", func() bool { return f.sockets.Count() == 4 })
}

func TestStreamsOfOneSocketAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	c := f.open("")
	for i := range 20 {
		c.subscribe(fmt.Sprint(i), `subscription{idle}`)
		c.expectPart(`{"idle":1}`)
	}
	c.subscribe("more", `subscription{idle}`)
	c.expectPart(`{"type":"error","id":"more","payload":[{"message":"Too many streams on one socket.","extensions":{"code":"RATE_LIMITED"}}]}`)
	c.send(`{"type":"complete","id":"7"}`)
	c.subscribe("more", `subscription{idle}`)
	c.expectPart(`{"idle":1}`)
}

func TestFloodOfFramesCloses(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{FrameRate: 1, FrameBurst: 30}})
	for name, c := range map[string]*wsClient{"signed on": f.open(""), "before connection_init": f.dial(dialOptions{})} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			for range 100 {
				if c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"pong"}`)) != nil {
					break
				}
			}
			c.expectClose(4429, "Too many messages")
		})
	}
}

func TestDrainClosesAllWithServiceRestart(t *testing.T) {
	t.Parallel()
	// With 20 random times within 200 ms, all are within 20 ms of each other once in
	// 10^17 runs; but a busy machine may see those of a short window together.
	window := 200 * time.Millisecond
	for !drainSpreads(t, window) {
		if window *= 5; window > testenv.Wait {
			t.Fatal("all are sent away at once")
		}
	}
}

// drainSpreads drains a server with 20 sockets, and reports whether they were closed at
// different times within the window.
func drainSpreads(t *testing.T, window time.Duration) bool {
	t.Helper()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{DrainWindow: window}})
	var clients []*wsClient
	for range 20 {
		c := f.open("")
		c.subscribe("1", `subscription{idle}`)
		c.expectPart(`{"idle":1}`)
		clients = append(clients, c)
	}
	drained := make(chan error, 1)
	go func() { drained <- f.sockets.Drain(t.Context()) }()
	var wg sync.WaitGroup
	closed := make([]time.Time, len(clients))
	for i, c := range clients {
		wg.Go(func() {
			_, err := c.read()
			closed[i] = time.Now()
			if websocket.CloseStatus(err) != 1012 {
				t.Errorf("closed with %v", err)
			}
		})
	}
	wg.Wait()
	if err := <-drained; err != nil {
		t.Error(err)
	}
	_, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(f.server.URL, "http")+"/graphql", nil)
	if err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a draining server takes sockets: %v", resp)
	}
	return slices.MaxFunc(closed, time.Time.Compare).Sub(slices.MinFunc(closed, time.Time.Compare)) >= window/10
}

func TestServiceThatIsAwayDoesNotForbid(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{transport: transport.Options{Authenticate: func(context.Context, string) (transport.Caller, error) {
		return transport.Caller{}, context.DeadlineExceeded
	}}})
	c := f.dial(dialOptions{})
	c.init("user:ann")
	c.expectClose(1012, "Try again")
}
