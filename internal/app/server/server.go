// Package server owns the listeners of the process: the public one with GraphQL, the
// shop's files, webhooks and, in development, the playground; and the admin one with
// health, metrics and profiles. It owns the middleware of all requests: request id, log
// line, limits, security headers, client address; and the graceful shutdown.
//
// Request semantics belong to the handlers that are passed in.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/platform/clock"
)

const (
	idleTimeout    = 75 * time.Second // longer than the 60 s of proxies: the side that sends requests must close first
	maxHeaderBytes = 16 << 10
)

// Options configure a Server. Public and Admin come from NewPublic and NewAdmin.
type Options struct {
	PublicAddr string // "host:port"; port 0 picks a free one; "" = no public listener
	AdminAddr  string // "" = no admin listener
	// PublicListener is used instead of PublicAddr if the address must be known in
	// advance; the server closes it.
	PublicListener net.Listener
	// Open opens the other listeners; nil = those of the network.
	Open func(ctx context.Context, network, addr string) (net.Listener, error)
	// PublicConnections bounds the open connections of the public listener: NewPublic's
	// handler answers further ones with 503. 0 = no bound.
	PublicConnections int
	Public            http.Handler
	Admin             http.Handler
	// Ready is set to draining when the server stops, so that a load balancer sends no
	// more requests; nil = no readiness.
	Ready   *Readiness
	Streams Drainer // WebSockets and event streams; nil = none
	// DrainDelay is how long /readyz fails before the listener closes.
	DrainDelay time.Duration
	// DrainTimeout is the timeout for running requests; 20 s by default.
	DrainTimeout time.Duration
	// RequestTimeout is the timeout of the handlers. The timeouts of connections grow
	// with it; up to 5 s they are 2 s for a header, 5 s for a request, and 15 s for request
	// and response. Sockets and streams set their own deadlines once they run.
	RequestTimeout time.Duration
	Log            *slog.Logger
}

// Drainer closes sockets and streams; transport.Sockets implements it.
type Drainer interface {
	Drain(ctx context.Context) error
}

// Server holds both listeners.
type Server struct {
	opts   Options
	public *http.Server
	admin  *http.Server
	pl, al net.Listener
}

// Listen opens the listeners; Run serves them.
func Listen(ctx context.Context, opts Options) (*Server, error) {
	if opts.DrainTimeout == 0 {
		opts.DrainTimeout = 20 * time.Second
	}
	s := &Server{opts: opts, public: newHTTPServer(opts.Public, opts), admin: newHTTPServer(opts.Admin, opts)}
	s.admin.WriteTimeout = 0 // a CPU profile takes as long as requested
	open := opts.Open
	if open == nil {
		open = new(net.ListenConfig).Listen
	}
	var err error
	s.pl = opts.PublicListener
	if s.pl == nil && opts.PublicAddr != "" {
		if s.pl, err = open(ctx, "tcp", opts.PublicAddr); err != nil {
			return nil, fmt.Errorf("public listener: %w", err)
		}
	}
	if s.pl != nil && opts.PublicConnections > 0 {
		s.pl = &limitedListener{Listener: s.pl, limit: int64(opts.PublicConnections)}
		s.public.ConnContext = markBeyond // NewPublic's handler refuses them
	}
	if opts.AdminAddr == "" {
		return s, nil
	}
	if s.al, err = open(ctx, "tcp", opts.AdminAddr); err != nil {
		if s.pl != nil {
			_ = s.pl.Close()
		}
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	return s, nil
}

func newHTTPServer(h http.Handler, opts Options) *http.Server {
	timeout := max(opts.RequestTimeout, 5*time.Second)
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: timeout * 2 / 5,
		ReadTimeout:       timeout,
		WriteTimeout:      timeout * 3,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// net/http logs failed handshakes and similar errors, which are useful for
		// debugging only
		ErrorLog: slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
}

// PublicAddr returns the address of the public listener; nil if there is none.
func (s *Server) PublicAddr() net.Addr {
	if s.pl == nil {
		return nil
	}
	return s.pl.Addr()
}

// AdminAddr returns the address of the admin listener; nil if there is none.
func (s *Server) AdminAddr() net.Addr {
	if s.al == nil {
		return nil
	}
	return s.al.Addr()
}

// Run serves until ctx ends, then drains: fail readiness, wait, accept no new
// connections, ask sockets to reconnect, finish running requests, close the admin
// listener last. It returns nil after a clean stop, an error if a listener failed or
// requests were aborted.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 2)
	serve := func(srv *http.Server, l net.Listener) {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
			return
		}
		failed <- nil
	}
	running := 0
	if s.pl != nil {
		running++
		go serve(s.public, s.pl)
	}
	if s.al != nil {
		running++
		go serve(s.admin, s.al)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		running--
	}
	err = errors.Join(err, s.drain(context.WithoutCancel(ctx)))
	for range running {
		err = errors.Join(err, <-failed)
	}
	return err
}

func (s *Server) drain(ctx context.Context) error {
	if s.opts.Ready != nil {
		s.opts.Ready.draining.Store(true)
	}
	delay := time.NewTimer(s.opts.DrainDelay)
	defer delay.Stop()
	<-delay.C
	ctx, cancel := context.WithTimeout(ctx, s.opts.DrainTimeout)
	defer cancel()
	drained := make(chan error, 1)
	go func() {
		if s.opts.Streams == nil {
			drained <- nil
			return
		}
		drained <- s.opts.Streams.Drain(ctx)
	}()
	err := s.public.Shutdown(ctx) // streams end because Drain ends them
	if err != nil {
		_ = s.public.Close()
		err = fmt.Errorf("requests cut off: %w", err)
	}
	if derr := <-drained; derr != nil {
		err = errors.Join(err, fmt.Errorf("sockets cut off: %w", derr))
	}
	if aerr := s.admin.Shutdown(ctx); aerr != nil {
		_ = s.admin.Close()
	}
	return err
}

// Readiness reports whether the process accepts requests.
type Readiness struct {
	clock    clock.Clock
	checks   []Check
	draining atomic.Bool
	mu       sync.Mutex
	passed   []time.Time // guarded by mu; when each check passed last; zero = never
}
