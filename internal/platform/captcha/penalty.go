package captcha

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seckill/internal/platform/batch"
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
	// mostPenalty is what the highest level needs, so that every penalty expires.
	mostPenalty = freePenalty << (levels - 1)
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

// Penalties are counted in each process, and in Redis over all of them. Creating a challenge
// never waits for Redis: what a process added is sent when a user or network is seen again or
// has noteFrom of penalty that Redis does not know, and the reply raises the process's own
// count. So a client that spreads over n processes has at most n points that the others do
// not count yet.
const (
	// noteFrom is two points of a user.
	noteFrom = 2 * userDecay
	// knownSubjects bounds the users and networks whose penalties a process keeps, about
	// 200 bytes each. Those not seen for longest are dropped.
	knownSubjects = 1 << 16

	maxNotes        = 256  // of one script call, about 1 ms
	maxNotesWaiting = 4096 // of a shard; more are dropped, and sent with the next challenge
	noteTimeout     = 2 * time.Second
)

// subject is who gets penalty points: a user in a sale, a network in a sale, or, without a sale, a
// network at the forms of accounts.
type subject struct {
	sale    id.Sale
	user    id.User
	network netip.Prefix
}

// name is the subject as its key names it.
func (s subject) name() string {
	if s.user.IsZero() {
		return s.network.String()
	}
	return s.user.String()
}

// decay is the time in which a point expires.
func (s subject) decay() time.Duration {
	if s.user.IsZero() {
		return userDecay / networkUsers
	}
	return userDecay
}

// penalty is what a process knows of a subject.
type penalty struct {
	cool    time.Time     // when the last point expires
	unsent  time.Duration // of cool, what Redis does not know
	known   bool          // cool has the points of other processes, as of the last reply
	expires time.Time     // of the last challenge; the next one has to void it
}

// penalties holds the penalties of one process. It is safe for concurrent use.
type penalties struct {
	cfg   *Config
	notes [id.Shards]*batch.Batcher[note, note]
	sends sync.WaitGroup // of notes; tests wait for them

	mu       sync.Mutex
	subjects *simplelru.LRU[subject, *penalty] // guarded by mu, and so are its values
}

// note is what a challenge adds to a penalty and voids, and in the reply the penalty over all
// processes.
type note struct {
	subject
	shard   int
	record  string        // of the challenges that are voided
	points  time.Duration // that the points take to expire; 0 = penalties are not used
	created time.Time     // of the challenge that voids earlier ones; zero = none
	cool    time.Time     // in the reply
}

func newPenalties(cfg *Config) *penalties {
	p := &penalties{cfg: cfg}
	subjects, err := simplelru.NewLRU[subject, *penalty](knownSubjects, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	p.subjects = subjects
	for shard := range p.notes {
		p.notes[shard] = batch.New(batch.Config[note, note]{
			Process: p.send, MaxBatch: maxNotes, MaxInFlight: 1, MaxWaiting: maxNotesWaiting, Timeout: noteTimeout,
		})
	}
	return p
}

// subjects returns the user in the sale, and the network in the sale, or for accounts.
func (scope Scope) subjects() []subject {
	all := make([]subject, 0, 2)
	if scope.Purpose.OfSale() {
		all = append(all, subject{sale: scope.Sale, user: scope.User})
	}
	if net := network(scope.From); net.IsValid() {
		all = append(all, subject{sale: scope.Sale, network: net})
	}
	return all
}

// add adds the points of a challenge to its penalties and returns its level, from 0. What has
// to be written is sent after the return.
func (p *penalties) add(scope Scope, now time.Time, o createOptions) (level int) {
	shard := scope.shard()
	for _, subject := range scope.subjects() {
		cool, n, send := p.addTo(subject, now, o)
		for level < levels-1 && cool.Sub(now) > freePenalty<<level {
			level++
		}
		if send {
			n.shard, n.record = shard, scope.record()
			p.sends.Go(func() { p.sent(n) })
		}
	}
	if p.cfg.SameForAll {
		return 0
	}
	return level
}

// addTo adds to one penalty, and returns the note of it if one has to be sent.
func (p *penalties) addTo(subject subject, now time.Time, o createOptions) (cool time.Time, n note, send bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, seen := p.subjects.Get(subject)
	if !seen {
		at = &penalty{}
		p.subjects.Add(subject, at)
	}
	if at.cool.Before(now) || at.cool.Sub(now) > mostPenalty+clockDifference { // the latter: the clock was set back
		at.cool, at.unsent = now, 0
	}
	points := time.Duration(o.points) * subject.decay()
	at.cool = at.cool.Add(points)
	if most := now.Add(mostPenalty); at.cool.After(most) {
		at.cool = most
	}
	at.unsent += points
	n.subject = subject
	if o.voids && now.Before(at.expires) {
		n.created = now
	}
	if !subject.user.IsZero() {
		at.expires = now.Add(p.cfg.Life)
	}
	if !p.cfg.SameForAll && (seen && !at.known || at.unsent >= noteFrom || !n.created.IsZero()) {
		n.points, at.unsent, at.known = at.unsent, 0, true
	}
	return at.cool, n, n.points > 0 || !n.created.IsZero()
}

// sent sends a note in a batch and stores the reply. After an error the points stay unsent.
func (p *penalties) sent(n note) {
	reply, err := p.notes[n.shard].Do(context.Background(), n)
	if n.points == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.subjects.Peek(n.subject)
	switch {
	case !ok:
	case err != nil:
		at.unsent, at.known = min(at.unsent+n.points, mostPenalty), false
	default:
		if cool := reply.cool.Add(at.unsent); cool.After(at.cool) { // else points are in flight
			at.cool = cool
		}
	}
}

// send runs lua/note.lua for the notes of one shard.
func (p *penalties) send(ctx context.Context, notes []note) []batch.Result[note] {
	keys := make([]string, 0, 2*len(notes))
	args := append(make([]any, 0, 2+3*len(notes)), mostPenalty.Milliseconds(), p.cfg.recordLife().Milliseconds())
	for _, n := range notes {
		created := int64(0)
		if !n.created.IsZero() {
			created = n.created.UnixMicro()
		}
		keys = append(keys, p.cfg.Keys.Penalty(n.shard, n.sale, n.name()), p.cfg.Keys.Answers(n.shard, n.sale))
		args = append(args, n.points.Milliseconds(), created, n.record)
	}
	reply, err := noteScript.Run(ctx, p.cfg.Client, keys, args...).Int64Slice()
	if err == nil && len(reply) != 1+len(notes) {
		err = fmt.Errorf("captcha script replied %d values for %d notes", len(reply), len(notes))
	}
	if err != nil {
		return batch.Fail[note](len(notes), err)
	}
	results := make([]batch.Result[note], len(notes))
	for i := range notes {
		results[i].Value.cool = time.UnixMilli(reply[1+i]).UTC()
	}
	return results
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
	if scope.Purpose.OfSale() {
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

// record names the record of the user's challenges in the sale; see lua/answer.lua.
func (scope Scope) record() string {
	if scope.Purpose == Waitlist {
		return "waitlist:" + scope.User.String()
	}
	return scope.User.String()
}

// name returns the id of a new challenge, which carries its shard.
func (scope Scope) name() id.Challenge { return id.NewIn[id.Challenge](scope.shard()) }
