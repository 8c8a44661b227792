package postgres

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	dialTimeout = 2 * time.Second // TCP handshake with a server in the same network
	keepAlive   = 15 * time.Second
)

// dialer opens wires for lib/pq. Without it a server that vanishes without
// closing its connections (a pulled cable, a full firewall table) holds every
// caller for minutes, whatever its context says.
type dialer struct {
	silence time.Duration // a read that waits longer than this fails
}

// DialContext connects. The wire is left in the slot of the context, if it
// carries one, so that the connection made from it can bound it by contexts.
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

// Dial is what lib/pq calls where it has no context.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is what lib/pq calls where it has a timeout only.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// slotKey is the context key of a slot.
type netConnKey struct{}

// slot hands the dialled wire back through lib/pq, which keeps it to itself.
type netConnSlot struct {
	netConn *netConn
	release func()
}

// wire is a network connection on which every read and write has a deadline,
// and which the context of the running statement can cut.
type netConn struct {
	net.Conn
	silence time.Duration

	mu   sync.Mutex
	turn int64 // guarded by mu; counts bounds, so that a late cut hits its own statement only
	cut  bool  // guarded by mu; the context of this turn has ended
}

// Read reads with a deadline.
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
	return w.Conn.Read(p)
}

// Write writes with a deadline.
func (w *netConn) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// bound lets the end of ctx fail the reads of this wire until release is called.
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
			_ = w.SetReadDeadline(time.Unix(1, 0)) // a netConn that is closed needs no cutting
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
