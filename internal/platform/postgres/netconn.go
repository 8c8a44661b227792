package postgres

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const (
	dialTimeout = 2 * time.Second // TCP handshake with a server in the same network
	keepAlive   = 15 * time.Second
)

// dialer opens network connections for lib/pq. Without it, a server that disappears
// without closing its connections (a pulled cable, a full firewall table) blocks every
// caller for minutes, whatever its context.
type dialer struct {
	silence time.Duration // timeout of a single read
}

// DialContext connects. It stores the connection in the slot of the context, if there
// is one, so that contexts of statements can bound it.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: userTimeout(d.silence)}
	c, err := nd.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := &netConn{Conn: c, silence: d.silence}
	if s, ok := ctx.Value(netConnKey{}).(*netConnSlot); ok {
		s.netConn = w
		s.release = w.bound(ctx)
	}
	return w, nil
}

// Dial is called by lib/pq when it has no context.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is called by lib/pq when it has only a timeout.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

type netConnKey struct{}

// netConnSlot passes the connection from the dialer to connector, because lib/pq gives
// no access to it.
type netConnSlot struct {
	netConn *netConn
	release func()
}

// netConn is a network connection with a deadline on every read and write. The context
// of the running statement can interrupt it.
type netConn struct {
	net.Conn
	silence time.Duration

	mu   sync.Mutex
	wire wire  // guarded by mu
	turn int64 // guarded by mu; counts bounds, so that a late cut affects only its own statement
	cut  bool  // guarded by mu; the context of this turn has ended
}

func (w *netConn) Read(p []byte) (int, error) {
	w.mu.Lock()
	deadline := time.Now().Add(w.silence)
	if w.cut {
		deadline = time.Unix(1, 0)
	}
	err := w.SetReadDeadline(deadline)
	w.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wire.refusing {
		return 0, io.ErrUnexpectedEOF // lib/pq closes the connection after this error
	}
	if n > 0 {
		n = w.wire.received(p[:n])
	}
	if n == 0 && err == nil && w.wire.refusing {
		return 0, io.ErrUnexpectedEOF
	}
	w.wire.broken = w.wire.broken || err != nil
	return n, err
}

func (w *netConn) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	w.mu.Lock()
	w.wire.sent(p) // before its answer can arrive
	w.mu.Unlock()
	n, err := w.Conn.Write(p)
	if err != nil {
		w.mu.Lock()
		w.wire.broken = true
		w.mu.Unlock()
	}
	return n, err
}

// inStep reports whether the server has answered all requests, without an error of the
// network. Of an encrypted connection it knows the errors only.
func (w *netConn) inStep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wire.inStep()
}

// bound makes reads of this connection fail when ctx ends, until release is called.
func (w *netConn) bound(ctx context.Context) (release func()) {
	w.mu.Lock()
	w.turn++
	turn := w.turn
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.turn == turn {
			w.cut = true
			_ = w.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no interruption
		}
	})
	return func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.turn++
		w.cut = false
	}
}
