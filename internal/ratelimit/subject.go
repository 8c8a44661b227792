package ratelimit

import (
	"net/netip"

	"github.com/google/uuid"
)

// Subject is who or what is counted.
type Subject string

// All counts all requests together.
const All Subject = "all"

// User counts one person.
func User(id uuid.UUID) Subject { return Subject("u:" + id.String()) }

// Session counts one session, whoever shows that it is theirs.
func Session(id uuid.UUID) Subject { return Subject("s:" + id.String()) }

// Addr counts one address; of IPv6 the /64, which is what one household or one
// server is given. An invalid address counts with all other invalid ones.
func Addr(ip netip.Addr) Subject {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() {
		return "a:unknown"
	}
	if ip.Is6() {
		prefix, err := ip.Prefix(64)
		if err == nil {
			return Subject("a:" + prefix.Addr().String() + "/64")
		}
	}
	return Subject("a:" + ip.String())
}

// UserOrAddr counts the user of a signed-in request, else its address.
func UserOrAddr(user uuid.UUID, ip netip.Addr) Subject {
	if user != uuid.Nil {
		return User(user)
	}
	return Addr(ip)
}

// In counts the subject apart from itself elsewhere: in one sale.
func (s Subject) In(sale uuid.UUID) Subject { return s + "@" + Subject(sale.String()) }
