package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"seckill/internal/platform/fault"
)

// socket is one graphql-transport-ws connection. It has one goroutine that reads, and one
// for each stream. The init timeout, pings and the token's expiry are timers and need no
// goroutine.
type socket struct {
	h       *Handler
	conn    *websocket.Conn // used to read and close
	raw     net.Conn        // used to write data frames
	ctx     context.Context // of all operations of the socket; cancelled when it closes
	cancel  context.CancelFunc
	headers http.Header // the headers that operations read; nil = none

	// Used only by the reading goroutine.
	acked     bool
	caller    Caller
	allowance bucket

	mu      sync.Mutex      // held while writing, so that nothing is written after the end of a stream or of the socket
	closing bool            // guarded by mu
	streams []*socketStream // guarded by mu
	running atomic.Int32    // streams, for readers without mu
	clock   *time.Timer     // guarded by mu: the init timeout, then the next ping
	expiry  *time.Timer     // guarded by mu: the token's expiry; nil without a token
}

// serveSocket upgrades the request and returns; the socket continues on its own
// goroutine.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	opts := h.opts.Sockets.opts
	if !originAllowed(r, opts) {
		h.refuse(w, r, &badRequest{http.StatusForbidden, "This origin is not allowed."})
		return
	}
	s := &socket{h: h}
	if err := h.opts.Sockets.admits(r.Context()); err != nil {
		h.writeFault(withHeaders(r.Context(), r.Header), w, graphqlResponse, err)
		return
	}
	protocols := offered(r)
	known := slices.Contains(protocols, subprotocol)
	speak := subprotocol
	if !known && len(protocols) > 0 {
		speak = protocols[0] // without a protocol in the response the client would never see the close code
	}
	s.allowance = newBucket(opts.FrameRate, opts.FrameBurst)
	upgrade := &upgradeWriter{ResponseWriter: w, writeTimeout: opts.WriteTimeout}
	conn, err := websocket.Accept(upgrade, r, &websocket.AcceptOptions{
		Subprotocols:       []string{speak},
		InsecureSkipVerify: true, // the origin was checked above
		OnPingReceived:     s.onPing,
	})
	if err != nil {
		return // Accept has written the refusal
	}
	conn.SetReadLimit(opts.MaxFrame)
	s.conn, s.raw = conn, upgrade.conn
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	for _, name := range []string{"Accept-Language", "Authorization"} {
		if v := r.Header.Get(name); v != "" {
			if s.headers == nil {
				s.headers = http.Header{}
			}
			s.headers.Set(name, v)
		}
	}
	// The request, its buffers and net/http's goroutine are freed; the socket stays.
	go s.live(known)
}

// live runs the socket until it ends.
func (s *socket) live(known bool) {
	defer s.end()
	if err := s.h.opts.Sockets.enter(s.ctx, s, false); err != nil {
		if fault.CodeOf(err) == fault.RateLimited {
			s.shut(closeTryLater, reasonTooManySockets)
			return
		}
		s.shut(closeServiceRestart, reasonServerRestarting)
		return
	}
	if !known {
		s.shut(closeBadSubprotocol, "Subprotocol not acceptable")
		return
	}
	s.mu.Lock()
	s.clock = time.AfterFunc(s.h.opts.Sockets.opts.InitTimeout, func() {
		s.shut(closeInitTimeout, "Connection initialisation timeout")
	})
	s.mu.Unlock()
	for s.read() {
	}
}

// read handles one message and reports whether the socket stays open.
func (s *socket) read() bool {
	kind, data, err := s.conn.Read(context.Background())
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		s.shut(websocket.StatusMessageTooBig, "Frame too large")
		return false
	case err != nil:
		return false
	case !s.allowance.take(time.Now()):
		s.shut(closeTooMany, "Too many messages")
		return false
	case kind != websocket.MessageText:
		s.shut(closeBadRequest, "Invalid message")
		return false
	}
	return s.handle(string(data))
}

// onPing counts a client's pings as frames. It runs inside read.
func (s *socket) onPing(context.Context, []byte) bool {
	if s.allowance.take(time.Now()) {
		return true
	}
	go s.shut(closeTooMany, "Too many messages")
	return false
}

// end frees all resources of the socket.
func (s *socket) end() {
	if v := recover(); v != nil {
		s.h.opts.Log.ErrorContext(s.ctx, "socket", slog.Any("error", s.h.opts.Recover(s.ctx, v)))
	}
	s.mu.Lock()
	s.closing = true
	for _, t := range []*time.Timer{s.clock, s.expiry} {
		if t != nil {
			t.Stop()
		}
	}
	s.mu.Unlock()
	s.cancel()
	_ = s.conn.CloseNow() // closed already, in most cases
	s.h.opts.Sockets.leave(s)
}

// shut closes with a code. Nothing is written afterwards: a stream that ends because of
// it sends no "complete", which a client would treat as its regular end.
func (s *socket) shut(code websocket.StatusCode, reason string) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return
	}
	s.closing = true
	s.mu.Unlock()
	s.cancel()
	_ = s.conn.Close(code, reason) // an error means that the client has disconnected
}

// unused reports whether no stream runs. It does not wait for a write.
func (s *socket) unused() bool { return s.running.Load() == 0 }

// write sends a message, which is in buf after the space for its header, unless the
// socket is closing. mu is held. A client that does not receive it in time is
// disconnected.
func (s *socket) write(buf []byte) bool {
	if s.closing {
		return false
	}
	if _, err := s.raw.Write(frame(buf)); err != nil {
		s.closing = true
		s.cancel()
		_ = s.conn.CloseNow()
		return false
	}
	return true
}

// send is write for messages that belong to no stream.
func (s *socket) send(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(append(header[:], text...))
}

// ping sends a ping, waits for the pong, and schedules the next one. It runs on its
// timer's goroutine.
func (s *socket) ping() {
	opts := s.h.opts.Sockets.opts
	ctx, cancel := context.WithTimeout(s.ctx, opts.PingTimeout)
	defer cancel()
	if err := s.conn.Ping(ctx); err != nil {
		s.cancel()
		_ = s.conn.CloseNow()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.clock.Reset(opts.PingEvery)
	}
}

// bucket is a token bucket for frames: a rate per second and a burst.
type bucket struct {
	rate, burst float64
	left        float64
	last        time.Time
}

func newBucket(rate, burst int) bucket {
	return bucket{rate: float64(rate), burst: float64(burst), left: float64(burst), last: time.Now()}
}

func (b *bucket) take(now time.Time) bool {
	b.left = min(b.burst, b.left+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// Data frames bypass the websocket library and are written directly to the connection:
// one system call, no lock except the connection's own, and no write buffer per idle
// socket. The library still reads, answers pings, and closes.

// frameHeader is the space reserved for a header before a payload.
const frameHeader = 10 // bytes; the longest header of a server, with a 64-bit length

// frame completes a text frame (RFC 6455 §5.2: FIN, opcode 1, no mask). buf is
// frameHeader reserved bytes followed by the payload; the result is a subslice.
func frame(buf []byte) []byte {
	const finText = 0x81
	switch n := len(buf) - frameHeader; {
	case n < 126:
		head := buf[frameHeader-2:]
		head[0], head[1] = finText, byte(n) // 0 to 125
		return head
	case n < 1<<16:
		head := buf[frameHeader-4:]
		head[0], head[1] = finText, 126
		binary.BigEndian.PutUint16(head[2:], uint16(n))
		return head
	default:
		buf[0], buf[1] = finText, 127
		binary.BigEndian.PutUint64(buf[2:], uint64(n))
		return buf
	}
}

// header is the reserved space.
var header [frameHeader]byte
