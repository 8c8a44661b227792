package server

import (
	"net/http"
	"net/netip"
	"strings"
)

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
