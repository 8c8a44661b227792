package testenv

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards connections from a client to a service and injects network faults.
type Proxy struct {
	t        testing.TB
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	open   []*link       // guarded by mu
	closed bool          // guarded by mu
	silent chan struct{} // guarded by mu; not nil while silenced, closed by Restore
	slow   *slowness     // guarded by mu; nil = as fast as the service
	needle []byte        // guarded by mu; the request whose reply is dropped, or nil
	losing bool          // guarded by mu; that request was forwarded, its reply is due
	holds  []*hold       // guarded by mu; requests to hold when they arrive
	held   []*hold       // guarded by mu; requests held now
}

// link is a connection of a client with the one to the service.
type link struct {
	client, service net.Conn
	half            bool // guarded by mu of the proxy: the client's side stays open, and what it sends is dropped
}

// slowness is how bytes are forwarded until it is over.
type slowness struct {
	chunk int           // bytes that are forwarded at once; 0 = as many as have come
	wait  time.Duration // before each of them
	over  chan struct{} // closed by Restore
}

// hold blocks one request, or the reply to it, and with it its connection.
type hold struct {
	needle []byte
	reply  bool // hold the reply, not the request
	caught chan struct{}
	let    chan struct{} // closed to release it
}

// NewProxy listens on a free port and forwards to target (host:port) until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{t: t, target: target, listener: l}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Silence stops forwarding in both directions; connections stay open and new ones are
// accepted. It simulates an unplugged cable.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// Trickle forwards one byte a second in each direction of each connection, new ones too.
func (p *Proxy) Trickle() { p.slowDown(1, time.Second) }

// Delay forwards what comes after a pause.
func (p *Proxy) Delay(pause time.Duration) { p.slowDown(0, pause) }

func (p *Proxy) slowDown(chunk int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = &slowness{chunk, wait, make(chan struct{})}
}

// HalfOpen closes the connections of the service and leaves those of the clients open: what they send
// is dropped, as by a host that has forgotten them. New connections are forwarded.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.open {
		l.half = true
		_ = l.service.Close() // it may be closed already
	}
}

// Restore ends Silence, Trickle and Delay, and forwards what was blocked.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
	if p.slow != nil {
		close(p.slow.over)
		p.slow = nil
	}
}

// LoseReplyTo cuts all connections once the service has answered the next request that
// contains needle: the request took effect, but the client does not receive the reply.
func (p *Proxy) LoseReplyTo(needle string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needle, p.losing = []byte(needle), false
}

// HoldRequest blocks the next request that contains needle before it reaches the service.
// The channel is closed when it is blocked. After Cut it never arrives.
func (p *Proxy) HoldRequest(needle string) <-chan struct{} { return p.hold(needle, false) }

// HoldReplyTo forwards the next request that contains needle and blocks all later output
// of the service on that connection. The channel is closed when the service has answered:
// the request took effect, and the client waits.
func (p *Proxy) HoldReplyTo(needle string) <-chan struct{} { return p.hold(needle, true) }

func (p *Proxy) hold(needle string, reply bool) <-chan struct{} {
	h := &hold{needle: []byte(needle), reply: reply, caught: make(chan struct{}), let: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h.caught
}

// endsIn reports whether the needle ends in the chunk, seen being the bytes before it.
func (h *hold) endsIn(seen, chunk []byte) bool {
	before := seen[max(0, len(seen)-len(h.needle)+1):]
	return bytes.Contains(slices.Concat(before, chunk), h.needle)
}

// longestNeedle bounds the bytes of a needle that are in the chunk before.
const longestNeedle = 128

// keepRequest blocks as long as a request is held.
func (p *Proxy) keepRequest(seen, chunk []byte, due *atomic.Pointer[hold]) {
	p.mu.Lock()
	i := slices.IndexFunc(p.holds, func(h *hold) bool { return h.endsIn(seen, chunk) })
	if i < 0 || p.closed {
		p.mu.Unlock()
		return
	}
	h := p.holds[i]
	p.holds = slices.Delete(p.holds, i, i+1)
	p.held = append(p.held, h)
	p.mu.Unlock()
	if h.reply {
		due.Store(h)
		return
	}
	close(h.caught)
	<-h.let
}

// keepReply blocks as long as the reply on its connection is held.
func (p *Proxy) keepReply(due *atomic.Pointer[hold]) {
	if h := due.Swap(nil); h != nil {
		close(h.caught)
		<-h.let
	}
}

// Release forwards everything that is held.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.held {
		close(h.let)
	}
	p.held = nil
}

// Cut closes all connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *Proxy) cutLocked() {
	for _, l := range p.open {
		_ = l.client.Close() // one side may be closed already
		_ = l.service.Close()
	}
	p.open = nil
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.cutLocked()
	p.mu.Unlock()
	p.Restore()
	p.Release()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.DialTimeout("tcp", p.target, Wait)
		if err != nil {
			_ = client.Close() // the client sees that the service is down
			continue
		}
		l := &link{client: client, service: server}
		if !p.keep(l) {
			return
		}
		var due atomic.Pointer[hold] // set when the reply on this connection is to be held
		p.running.Go(func() {
			var seen []byte // the end of the former chunk: a needle may be split
			p.pass(l, client, server, func(chunk []byte) bool {
				if !p.request(chunk) {
					return false
				}
				p.keepRequest(seen, chunk, &due)
				seen = bytes.Clone(chunk[max(0, len(chunk)-longestNeedle):])
				return true
			})
		})
		p.running.Go(func() {
			p.pass(l, server, client, func(chunk []byte) bool { p.keepReply(&due); return p.reply(chunk) })
		})
	}
}

func (p *Proxy) keep(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = l.client.Close()
		_ = l.service.Close()
		return false
	}
	p.open = append(p.open, l)
	return true
}

// pass copies from one side to the other until either is closed, or only from a client that is half-open. before
// is called with every chunk and returns false to stop forwarding.
func (p *Proxy) pass(l *link, from, to net.Conn, before func(chunk []byte) bool) {
	defer p.drop(l, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.isHalf(l) {
			p.waitForSound()
			if !before(buf[:n]) || !p.forward(to, buf[:n]) && !p.isHalf(l) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) isHalf(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.half
}

// forward writes a chunk, as slowly as it has to.
func (p *Proxy) forward(to net.Conn, chunk []byte) bool {
	for len(chunk) > 0 {
		p.mu.Lock()
		slow, n := p.slow, len(chunk)
		p.mu.Unlock()
		if slow != nil {
			if slow.chunk > 0 {
				n = min(n, slow.chunk)
			}
			select {
			case <-time.After(slow.wait):
			case <-slow.over:
			}
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return false
		}
		chunk = chunk[n:]
	}
	return true
}

func (p *Proxy) waitForSound() {
	p.mu.Lock()
	silent := p.silent
	p.mu.Unlock()
	if silent != nil {
		<-silent
	}
}

func (p *Proxy) request(chunk []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.needle != nil && bytes.Contains(chunk, p.needle) {
		p.needle, p.losing = nil, true
	}
	return true
}

func (p *Proxy) reply([]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.losing {
		return true
	}
	p.losing = false
	p.cutLocked()
	return false
}

// drop closes a connection, but leaves the client's side open that is half-open.
func (p *Proxy) drop(l *link, from net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = l.service.Close()
	if l.half && from == l.service {
		return
	}
	_ = l.client.Close()
	p.open = slices.DeleteFunc(p.open, func(o *link) bool { return o == l })
}

// Pipes is a listener in memory, so that the timeouts of a server can be tested with the
// fake clock of package synctest.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

// NewPipes returns an open listener.
func NewPipes() *Pipes {
	return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It must be called once.
func (p *Pipes) Close() error { close(p.closed); return nil }

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Dial returns the client's end of a new connection, once the server has accepted it.
func (p *Pipes) Dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}
