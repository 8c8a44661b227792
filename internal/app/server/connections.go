package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// limitedListener bounds the open connections of a listener, so that a crowd leaves files
// to the admin listener, Postgres and Redis. Requests of a connection beyond the limit get
// 503; connections beyond a further fortieth of it are closed at once.
type limitedListener struct {
	net.Listener
	limit int64
	open  atomic.Int64
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := l.open.Add(1)
		c := &limitedConn{Conn: conn, listener: l, beyond: n > l.limit}
		if n <= l.limit+l.limit/40+1 {
			return c, nil
		}
		_ = c.Close()
	}
}

type limitedConn struct {
	net.Conn
	listener *limitedListener
	beyond   bool // the limit
	once     sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.listener.open.Add(-1) })
	return err
}

type beyondLimit struct{}

// markBeyond is a ConnContext of http.Server.
func markBeyond(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*limitedConn); ok && c.beyond {
		return context.WithValue(ctx, beyondLimit{}, true)
	}
	return ctx
}

const tooManyConnections = `{"errors":[{"message":"Too many connections. Try again in 5 seconds.","extensions":{"code":"OVERLOADED","documentation":"/errors#OVERLOADED"}}]}`

// refuseBeyond responds with 503 to requests of connections beyond the limit.
func refuseBeyond(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(beyondLimit{}) == nil {
			h.ServeHTTP(w, r)
			return
		}
		header := w.Header()
		header.Set("Connection", "close")
		header.Set("Retry-After", "5")
		header.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(tooManyConnections))
	})
}
