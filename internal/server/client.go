package server

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

type clientKey struct{}

// withClient is a request's context with the address of its client.
type withClient struct {
	context.Context
	addr netip.Addr
}

// Value returns the address, or what the parent knows.
func (c *withClient) Value(key any) any {
	if _, ok := key.(clientKey); ok {
		return &c.addr
	}
	return c.Context.Value(key)
}

// ClientAddr returns the address of the client of a request, invalid outside of
// one.
func ClientAddr(ctx context.Context) netip.Addr {
	addr, _ := ctx.Value(clientKey{}).(*netip.Addr)
	if addr == nil {
		return netip.Addr{}
	}
	return *addr
}

// clientAddr finds who is at the other end: the peer, or, where the peer is one
// of our proxies, the last address in X-Forwarded-For that is not.
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
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return addr // what stands further left was written by a stranger
		}
		addr = hop.Unmap()
		if !trusted(addr, proxies) {
			return addr
		}
	}
	return addr
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Secure reports whether the client's connection is encrypted, as far as our own
// listener or one of the proxies knows.
func Secure(r *http.Request, proxies []netip.Prefix) bool { return secure(r, proxies) }

// secure reports whether the client's connection is encrypted, as far as our
// own listener or a trusted proxy knows.
func secure(r *http.Request, proxies []netip.Prefix) bool {
	if r.TLS != nil {
		return true
	}
	if r.Header.Get("X-Forwarded-Proto") != "https" {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && trusted(peer.Addr().Unmap(), proxies)
}
