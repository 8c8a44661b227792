package captcha

import (
	"net/netip"
	"time"

	"github.com/google/uuid"

	"seckill/internal/id"
)

// How hard a proof of work is depends on the penalty of who asks for it. Every
// challenge adds a point, and the next one after a wrong answer three; points go
// by themselves, one after the other. Up to freePenalty a proof of work is as hard as
// the sale has it; beyond it twice as hard, beyond twice freePenalty four times, up to
// 1<<(levels-1) times, but never harder than HardestPow.
const (
	levels = 4

	requestPoints = 1
	wrongPoints   = 3

	// userDecay is the time in which a point of a person goes: six challenges a
	// minute are free for ever.
	userDecay = 10 * time.Second
	// freePenalty is ten points of a person: ten pictures that could not be read, or
	// three wrong answers at once.
	freePenalty = 10 * userDecay
	// networkUsers is how many people a network stands for: an office, a
	// dormitory, customers of a carrier. Its points go as much faster.
	networkUsers = 30

	networkBits4 = 24 // of an IPv4 address
	networkBits6 = 64 // one household or one server

	// EasiestPow is the least that the highest number of a proof of work may be
	// set to: it has at least as many answers.
	EasiestPow = 10_000
	// HardestPow bounds the highest number of every proof of work: about ten
	// seconds of a telephone.
	HardestPow = 10_000_000
)

// penalty is one count that a challenge adds to.
type penalty struct {
	key   string
	decay time.Duration // in which a point goes
}

// penalties returns the counts of who asks, in the slot of the challenge: the
// person's in the sale, and the network's in the sale, or for accounts.
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

// network returns the /24 or /64 of an address. It is not valid for addresses that
// are not public: they are those of a proxy, or of the machine itself, and tell
// nothing about who is behind.
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

// shard returns where a challenge of the scope lies: with the sale, or with the
// network that asks.
func (scope Scope) shard() int {
	if scope.Purpose == Seckill {
		return id.ShardOf(scope.Sale)
	}
	net := network(scope.From)
	if !net.IsValid() {
		return int(id.New()[10]) % id.Shards // anywhere
	}
	sum := 0
	for _, b := range net.Addr().AsSlice() {
		sum = (sum*31 + int(b)) % (1 << 16)
	}
	return sum % id.Shards
}

// name returns an id for a new challenge, which tells its shard.
func (scope Scope) name() uuid.UUID { return id.NewTask(scope.shard()) }
