package ratelimit

import (
	"net/netip"

	"seckill/internal/platform/id"
)

// Subject is the key that attempts are counted by.
type Subject string

// All counts all requests together.
const All Subject = "all"

// User counts one user.
func User(id id.User) Subject { return Subject("u:" + id.String()) }

// Session counts one session.
func Session(id id.Session) Subject { return Subject("s:" + id.String()) }

// Device counts one device that signed in to an account before.
func Device(id string) Subject { return Subject("d:" + id) }

// In counts the subject separately in one sale.
func (s Subject) In(sale id.Sale) Subject { return s + "@" + Subject(sale.String()) }

// Range is a network that contains an address, and the factor by which its limit exceeds
// that of a single address.
type Range struct {
	Subject Subject
	Factor  int
}

// ipv6Ranges are the networks that providers assign to one customer: a /64, a /56 or a
// /48 (RFC 6177), and the /32 that a registry assigns to one provider, which may be the
// attacker. The limits grow far more slowly than the number of /64s, because one customer
// can use all of them.
var ipv6Ranges = [...]struct{ bits, factor int }{{64, 1}, {56, 2}, {48, 3}, {32, 32}}

// ipv4Blocks are blocks that a hosting provider assigns or sells as a whole. They are used
// for shares only: addresses of a mobile network stand for thousands of customers each, so
// that limits which refuse each of them alike may not be joined.
var ipv4Blocks = [...]struct{ bits, factor int }{{24, 16}, {16, 64}}

// network is a network that contains an address, and the factor of its limits.
type network struct {
	prefix netip.Prefix
	factor int
}

// networks returns the networks of a valid address, the smallest first.
func networks(ip netip.Addr) []network {
	if ip.Is4() {
		return []network{{netip.PrefixFrom(ip, ip.BitLen()), 1}}
	}
	out := make([]network, 0, len(ipv6Ranges))
	for _, r := range ipv6Ranges {
		prefix, err := ip.Prefix(r.bits)
		if err != nil {
			continue // only for bits beyond the length of an IPv6 address
		}
		out = append(out, network{prefix, r.factor})
	}
	return out
}

// blocks returns the networks of a valid address with those that belong to one provider,
// the smallest first.
func blocks(ip netip.Addr) []network {
	out := networks(ip)
	if !ip.Is4() {
		return out
	}
	for _, b := range ipv4Blocks {
		if prefix, err := ip.Prefix(b.bits); err == nil {
			out = append(out, network{prefix, b.factor})
		}
	}
	return out
}

// Ranges returns the networks of an address, the smallest first; at least one.
func Ranges(ip netip.Addr) []Range {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() {
		return []Range{{"a:unknown", 1}}
	}
	out := make([]Range, 0, len(ipv6Ranges))
	for _, n := range networks(ip) {
		name := n.prefix.Addr().String()
		if ip.Is6() {
			name = n.prefix.String()
		}
		out = append(out, Range{Subject("a:" + name), n.factor})
	}
	return out
}

// times returns the policy with its limits multiplied.
func (p Policy) times(factor int) Policy {
	p.Burst, p.PerSecond = p.Burst*factor, p.PerSecond*float64(factor)
	return p
}

// Network returns the /24 of an IPv4 or the /48 of an IPv6 address, for limits per
// network. It is invalid for an address that is not public: that of a proxy or of the
// machine itself does not identify the client.
func Network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return netip.Prefix{}
	}
	bits := 48
	if ip.Is4() {
		bits = 24
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // only for bits beyond the length of an address
	}
	return network
}
