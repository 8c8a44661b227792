package testenv

import "net"

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
