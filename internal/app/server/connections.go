package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
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

// clientAddr returns the client address: the peer, or, if the peer is a trusted proxy,
// the last address in X-Forwarded-For that is not a trusted proxy.
func clientAddr(r *http.Request, proxies []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap()
	if !trusted(addr, proxies) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, ok := forwardedAddr(strings.TrimSpace(hops[i]))
		if !ok {
			return addr // the client may have forged the elements further left
		}
		addr = hop.Unmap().WithZone("") // a zone would give one address many forms
		if !trusted(addr, proxies) {
			return addr
		}
	}
	return addr
}

// forwardedAddr parses one element of X-Forwarded-For. Some proxies add the port of the
// client: "192.0.2.1:4711", "[2001:db8::1]:4711", and brackets without a port.
func forwardedAddr(text string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr, true
	}
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), true
	}
	inner, bracketed := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	return addr, bracketed && closed && err == nil
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// fromTrusted reports whether a trusted proxy sent the request.
func fromTrusted(r *http.Request, proxies []netip.Prefix) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && trusted(peer.Addr().Unmap(), proxies)
}

// secure reports whether the client's connection is encrypted, according to the address of
// the installation, this listener or a trusted proxy.
func (o PublicOptions) secure(r *http.Request) bool {
	return o.HTTPS || r.TLS != nil ||
		r.Header.Get("X-Forwarded-Proto") == "https" && fromTrusted(r, o.TrustedProxies)
}
