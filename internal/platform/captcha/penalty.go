package captcha

import (
	"net/netip"
	"time"

	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// The difficulty of a proof of work depends on the requester's penalty. Every challenge
// adds a point, and a challenge after a wrong answer three; points expire one after the
// other. Up to freePenalty the highest number is that of the sale; above it twice,
// above twice freePenalty four times, up to 1<<(levels-1) times that number, but never
// above HardestPow.
const (
	levels = 4

	requestPoints = 1
	wrongPoints   = 3

	// userDecay is the time in which one point of a user expires: six challenges a
	// minute are free.
	userDecay = 10 * time.Second
	// freePenalty is ten points of a user: ten unreadable images, or three wrong
	// answers at once.
	freePenalty = 10 * userDecay
	// networkUsers is the assumed number of users of a network: a company, a dormitory,
	// customers of a carrier. Its points expire that many times faster.
	networkUsers = 30

	networkBits4 = 24 // of an IPv4 address
	networkBits6 = 64 // one household or one server

	// EasiestPow is the minimum of the setting for the highest number of a proof of
	// work.
	EasiestPow = 10_000
	// HardestPow is the maximum of the highest number: about ten seconds of computation
	// on a phone.
	HardestPow = 10_000_000
)

// penalty is one counter that a challenge adds to.
type penalty struct {
	key   string
	decay time.Duration // time in which a point expires
}

// penalties returns the counters of a requester, in the slot of the challenge: the
// user's in the sale, and the network's in the sale, or for accounts.
func (s *Service) penalties(scope Scope, shard int) []penalty {
	if s.cfg.SameForAll {
		return nil
	}
	var all []penalty
	if scope.Purpose == Seckill {
		all = append(all, penalty{key: s.cfg.Keys.Penalty(shard, scope.Sale, scope.User.String()), decay: userDecay})
	}
	if net := network(scope.From); net.IsValid() {
		all = append(all, penalty{key: s.cfg.Keys.Penalty(shard, scope.Sale, net.String()), decay: userDecay / networkUsers})
	}
	return all
}

// network returns the /24 or /64 of an address. It is invalid for addresses that are
// not public: they belong to a proxy or to the machine itself, and do not identify a
// client.
func network(from netip.Addr) netip.Prefix {
	from = from.Unmap().WithZone("")
	if !from.IsGlobalUnicast() || from.IsPrivate() {
		return netip.Prefix{}
	}
	bits := networkBits6
	if from.Is4() {
		bits = networkBits4
	}
	net, err := from.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // only for bits that an address does not have
	}
	return net
}

// shard returns the shard of the scope's challenges: that of the sale, or one derived
// from the network of the request.
func (scope Scope) shard() int {
	if scope.Purpose == Seckill {
		return id.ShardOf(scope.Sale)
	}
	net := network(scope.From)
	if !net.IsValid() {
		return int(id.New[uuid.UUID]()[10]) % id.Shards // any shard
	}
	sum := 0
	for _, b := range net.Addr().AsSlice() {
		sum = (sum*31 + int(b)) % (1 << 16)
	}
	return sum % id.Shards
}

// name returns the id of a new challenge, which carries its shard.
func (scope Scope) name() id.Challenge { return id.NewIn[id.Challenge](scope.shard()) }
