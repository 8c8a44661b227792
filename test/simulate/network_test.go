package simulate_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// machine is a host in the network.
type machine struct {
	name string
	addr netip.Addr

	dead  bool          // guarded by network.mu; it sends and receives nothing any more
	ahead time.Duration // guarded by network.mu; of its clock
}

// network connects machines by connections in memory. It delays each write, so that the
// order of what happens at the same time is that of the seed.
type network struct {
	random *source

	mu        sync.Mutex
	listeners map[string]*listener // guarded by mu; by address
	links     map[*link]struct{}   // guarded by mu
	ports     uint16               // guarded by mu; last one given to a client
	slowest   time.Duration        // guarded by mu; longest delay of a write
}

// source is a random generator that goroutines share.
type source struct {
	mu sync.Mutex
	r  *rand.Rand // guarded by mu
}

func newSource(seed, stream uint64) *source { return &source{r: rand.New(rand.NewPCG(seed, stream))} }

// intn returns a number below n.
func (s *source) intn(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

// upTo returns a duration of at most d.
func (s *source) upTo(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.r.Int64N(int64(d) + 1))
}

// chance reports true in n of 100 cases.
func (s *source) chance(n int) bool { return s.intn(100) < n }

func newNetwork(random *source, slowest time.Duration) *network {
	return &network{random: random, listeners: map[string]*listener{}, links: map[*link]struct{}{},
		ports: 20_000, slowest: slowest}
}

// link is a connection with its two ends.
type link struct {
	ends        [2]*machine // client, server
	there, back *pipe       // client to server, and back
}

// listener accepts the connections to an address.
type listener struct {
	network *network
	machine *machine
	at      net.TCPAddr
	queue   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		if l.network.listeners[l.at.String()] == l {
			delete(l.network.listeners, l.at.String())
		}
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return &l.at }

// listen opens an address of a machine.
func (n *network) listen(m *machine, addr string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	l := &listener{network: n, machine: m, at: *net.TCPAddrFromAddrPort(at), queue: make(chan net.Conn, 256), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: &l.at, Err: syscall.EADDRINUSE}
	}
	n.listeners[addr] = l
	return l, nil
}

// dial connects a machine to an address.
func (n *network) dial(ctx context.Context, from *machine, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[addr]
	if l == nil || from.dead || l.machine.dead {
		return nil, refused
	}
	n.ports++
	k := &link{ends: [2]*machine{from, l.machine}, there: newPipe(n), back: newPipe(n)}
	local := &net.TCPAddr{IP: from.addr.AsSlice(), Port: int(n.ports)}
	select {
	case l.queue <- &conn{link: k, network: n, in: k.there, out: k.back, local: &l.at, remote: local}:
	default:
		return nil, refused
	}
	n.links[k] = struct{}{}
	return &conn{link: k, network: n, in: k.back, out: k.there, local: local, remote: &l.at}, nil
}

// cut resets the links that a function selects and returns their number.
func (n *network) cut(selected func(client, server *machine) bool) int {
	return n.each(selected, func(k *link) { k.reset() })
}

// each calls a function for the links that another one selects.
func (n *network) each(selected func(client, server *machine) bool, do func(*link)) int {
	n.mu.Lock()
	var chosen []*link
	for k := range n.links {
		if selected(k.ends[0], k.ends[1]) {
			chosen = append(chosen, k)
		}
	}
	n.mu.Unlock()
	for _, k := range chosen {
		do(k)
	}
	return len(chosen)
}

// kill ends a machine: its connections are reset and its addresses closed.
func (n *network) kill(m *machine) {
	n.mu.Lock()
	m.dead = true
	var open []*listener
	for _, l := range n.listeners {
		if l.machine == m {
			open = append(open, l)
		}
	}
	n.mu.Unlock()
	for _, l := range open {
		_ = l.Close()
	}
	n.cut(func(client, server *machine) bool { return client == m || server == m })
}

func (n *network) isDead(m *machine) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return m.dead
}

// delay returns the delay of a write.
func (n *network) delay() time.Duration {
	n.mu.Lock()
	longest := n.slowest
	n.mu.Unlock()
	return 50*time.Microsecond + n.random.upTo(longest)
}

func (n *network) setSlowest(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slowest = d
}

func (n *network) gone(k *link) {
	n.mu.Lock()
	delete(n.links, k)
	n.mu.Unlock()
}

func (k *link) reset() {
	k.there.reset()
	k.back.reset()
}

// chunk is what was written at once, with the time of its arrival.
type chunk struct {
	at   time.Time
	data []byte
}

// pipe is one direction of a link.
type pipe struct {
	network *network
	mu      sync.Mutex
	cond    *sync.Cond
	chunks  []chunk     // guarded by mu
	last    time.Time   // guarded by mu; arrival of the last chunk
	arrival *time.Timer // guarded by mu; wakes the reader
	broken  bool        // guarded by mu; the link was reset
	ended   bool        // guarded by mu; the writer has closed it
	left    bool        // guarded by mu; the reader has closed it
	lost    bool        // guarded by mu; what is written from now on does not arrive
	late    bool        // guarded by mu; the deadline of the reader is over
	timer   *time.Timer // guarded by mu; of that deadline
}

func newPipe(n *network) *pipe {
	p := &pipe{network: n}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.cond.Broadcast()
}

func (p *pipe) reset() { p.change(func() { p.broken, p.chunks = true, nil }) }
func (p *pipe) lose()  { p.change(func() { p.lost = true }) }

func (p *pipe) read(into []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.left:
			return 0, net.ErrClosed
		case p.late:
			return 0, os.ErrDeadlineExceeded
		case p.broken:
			return 0, syscall.ECONNRESET
		case len(p.chunks) > 0:
			wait := time.Until(p.chunks[0].at)
			if wait <= 0 {
				n := copy(into, p.chunks[0].data)
				if p.chunks[0].data = p.chunks[0].data[n:]; len(p.chunks[0].data) == 0 {
					p.chunks = p.chunks[1:]
				}
				return n, nil
			}
			if p.arrival == nil {
				p.arrival = time.AfterFunc(wait, func() { p.change(func() {}) })
			} else {
				p.arrival.Reset(wait)
			}
		case p.ended:
			return 0, io.EOF
		}
		p.cond.Wait()
	}
}

func (p *pipe) write(data []byte) (int, error) {
	delay := p.network.delay()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return 0, net.ErrClosed
	case p.broken, p.left:
		return 0, syscall.EPIPE
	case p.lost:
		return len(data), nil
	}
	at := time.Now().Add(delay)
	if at.Before(p.last) {
		at = p.last
	}
	p.last = at
	p.chunks = append(p.chunks, chunk{at, append([]byte(nil), data...)})
	p.cond.Broadcast()
	return len(data), nil
}

func (p *pipe) deadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.late = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		p.late = true
		p.cond.Broadcast()
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.timer == mine {
			p.late = true
			p.cond.Broadcast()
		}
	})
	p.timer = mine
}

// conn is one end of a link.
type conn struct {
	link          *link
	network       *network
	in, out       *pipe
	local, remote net.Addr
	once          sync.Once
	read          func() // after each read; nil = nothing
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, &net.OpError{Op: "read", Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
	}
	if c.read != nil {
		c.read()
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	if err != nil {
		return n, &net.OpError{Op: "write", Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
	}
	return n, nil
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.change(func() { c.out.ended = true })
		c.in.change(func() { c.in.left, c.in.chunks = true, nil })
		c.in.deadline(time.Time{})
		c.network.gone(c.link)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.deadline(t)
	return nil
}

// SetWriteDeadline does nothing: writes do not block.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
