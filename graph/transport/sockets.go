package transport

import (
	"container/list"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/telemetry"
)

// Close codes of graphql-transport-ws and of this server. A graphql-ws client reconnects
// after 4403, 4408, 1012 and 1013, and not after the others.
const (
	closeBadRequest        websocket.StatusCode = 4400
	closeUnauthorized      websocket.StatusCode = 4401
	closeForbidden         websocket.StatusCode = 4403
	closeBadSubprotocol    websocket.StatusCode = 4406
	closeInitTimeout       websocket.StatusCode = 4408
	closeDuplicateID       websocket.StatusCode = 4409
	closeTooMany           websocket.StatusCode = 4429
	closeInternal          websocket.StatusCode = 4500
	closeServiceRestart                         = websocket.StatusServiceRestart
	closeTryLater                               = websocket.StatusTryAgainLater
	subprotocol                                 = "graphql-transport-ws"
	maxSocketIDLength                           = 128 // bytes; clients use small numbers or UUIDs
	reasonTokenExpired                          = "Token expired"
	reasonSessionEnded                          = "Session ended"
	reasonTooManySockets                        = "Too many sockets"
	reasonForbidden                             = "Forbidden"
	reasonServerRestarting                      = "Server restarting"
)

// SocketOptions bound sockets and streams. Zero fields have the default in brackets.
type SocketOptions struct {
	MaxSockets   int           // sockets and SSE streams of the process [50,000]; half of them for signed-in users
	MaxPerUser   int           // sockets of one signed-in user [3]
	MaxStreams   int           // streams of one socket, SSE streams of one user [20]
	MaxFrame     int64         // bytes of one frame [16 kB]
	FrameRate    int           // frames per second from one client [20]
	FrameBurst   int           // frames at once: a resuming client sends all its streams [FrameRate + 10]
	InitTimeout  time.Duration // from the upgrade to connection_init [DefaultInitTimeout]
	WriteTimeout time.Duration // of one write; then the client is disconnected [5 s]
	PingEvery    time.Duration // interval of pings [4 s]
	PingTimeout  time.Duration // from ping to pong [4 s]
	CheckEvery   time.Duration // interval of checks of a caller's rights [500 ms]
	DrainWindow  time.Duration // duration over which a drain spreads the closes [5 s]
	Origins      []string      // origins ("https://shop.example") allowed in addition to the server's own
	// Watch calls ended once a session is signed out, immediately if it already is;
	// unwatch stops watching. It must not wait for ended. nil = sessions do not end.
	Watch func(session id.Session, ended func()) (unwatch func())
	// Registerer receives the metrics; nil = none are exposed.
	Registerer prometheus.Registerer
}

func (o SocketOptions) withDefaults() SocketOptions {
	setDefault(&o.MaxSockets, 50_000)
	setDefault(&o.MaxPerUser, 3)
	setDefault(&o.MaxStreams, 20)
	setDefault(&o.MaxFrame, 16<<10)
	setDefault(&o.FrameRate, 20)
	setDefault(&o.FrameBurst, o.FrameRate+10)
	setDefault(&o.InitTimeout, DefaultInitTimeout)
	setDefault(&o.WriteTimeout, writeWait)
	setDefault(&o.PingEvery, 4*time.Second)
	setDefault(&o.PingTimeout, 4*time.Second)
	setDefault(&o.CheckEvery, 500*time.Millisecond)
	setDefault(&o.DrainWindow, 5*time.Second)
	origins := collect.Map(o.Origins, func(origin string) string {
		return strings.ToLower(strings.TrimSuffix(origin, "/"))
	})
	o.Origins = origins
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// member is an open socket or SSE stream.
type member interface {
	// shut ends the member. It may block for the duration of two writes.
	shut(code websocket.StatusCode, reason string)
	// unused reports whether the member runs no operation. It does not block.
	unused() bool
}

// owner is the user of a member; user is zero while it is anonymous.
type owner struct {
	client  anonymousClient // what an anonymous member is counted as
	element *list.Element   // the position of an anonymous member in Sockets.anonymous; nil otherwise
	user    id.User
	unwatch func()      // stops watching the session; nil without one
	check   *time.Timer // the next call of Caller.Recheck; nil without one
}

// Sockets holds every open socket and SSE stream of the process: it bounds them, closes
// those of a session that signed out, and drains them all when the server stops. It is
// safe for concurrent use.
//
// Anonymous members may use half of MaxSockets, so that they cannot lock out signed-in
// users. A member that exceeds the half or the whole closes the oldest anonymous one; it
// is refused only when all others are signed in.
type Sockets struct {
	opts SocketOptions

	mu        sync.Mutex
	members   map[member]owner     // guarded by mu
	users     map[id.User][]member // guarded by mu; signed-in members only
	counts    anonymousCounts      // guarded by mu
	anonymous *list.List           // guarded by mu; members without a user, oldest first
	draining  bool                 // guarded by mu
	idle      chan struct{}        // guarded by mu: closed when a drain has emptied members; nil otherwise
}

// NewSockets returns an empty registry.
func NewSockets(opts SocketOptions) *Sockets {
	r := &Sockets{opts: opts.withDefaults(), members: map[member]owner{}, users: map[id.User][]member{},
		counts: anonymousCounts{}, anonymous: list.New()}
	telemetry.For(opts.Registerer, "server").GaugeOf("sockets", "Open WebSockets and SSE streams.",
		func() float64 { return float64(r.Count()) })
	return r
}

// Count returns the number of open sockets and SSE streams.
func (r *Sockets) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.members)
}

// Drain refuses new sockets, closes all open ones with 1012, spread over the drain window
// so that their clients do not reconnect at the same time, and returns when the last one
// is closed or ctx ends.
func (r *Sockets) Drain(ctx context.Context) error {
	r.mu.Lock()
	r.draining = true
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	window := r.opts.DrainWindow
	if deadline, ok := ctx.Deadline(); ok {
		window = min(window, time.Until(deadline)/2)
	}
	timers := make([]*time.Timer, 0, len(r.members))
	for m := range r.members {
		delay := time.Duration(rand.Int64N(int64(max(window, 1)))) //nolint:gosec // jitter, not a secret
		timers = append(timers, time.AfterFunc(delay, func() { m.shut(closeServiceRestart, reasonServerRestarting) }))
	}
	r.signalIdle()
	r.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		for _, t := range timers {
			t.Stop()
		}
		return ctx.Err()
	}
}

// admits returns an error when a request may not open another socket.
func (r *Sockets) admits(ctx context.Context) error {
	client := unauthenticated(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.capacityError(client)
}

// enter adds an open socket or stream. signedIn means that claim will set its user; a
// socket has none before connection_init.
func (r *Sockets) enter(ctx context.Context, m member, signedIn bool) error {
	client := unauthenticated(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.capacityError(client); err != nil {
		return err
	}
	half := (r.opts.MaxSockets + 1) / 2
	if len(r.members) >= r.opts.MaxSockets || !signedIn && r.anonymous.Len() >= half {
		r.closeOldestAnonymous()
	}
	r.counts.add(client)
	o := owner{client: client}
	if !signedIn {
		o.element = r.anonymous.PushBack(m)
	}
	r.members[m] = o
	return nil
}

// closeOldestAnonymous frees the slot of one member. mu is held.
func (r *Sockets) closeOldestAnonymous() {
	oldest := r.anonymous.Front()
	if oldest == nil {
		return
	}
	m := oldest.Value.(member) // enter puts members in, nothing else
	r.remove(m)
	go m.shut(closeTryLater, reasonTooManySockets)
}

// capacityError returns an error when another member would exceed a bound. mu is held.
func (r *Sockets) capacityError(client anonymousClient) error {
	switch {
	case r.draining:
		return &fault.Error{Code: fault.Unavailable, Message: reasonServerRestarting, RetryAfter: time.Second}
	case len(r.members) >= r.opts.MaxSockets && r.anonymous.Len() == 0:
		return &fault.Error{Code: fault.Overloaded, Message: "Too many connections.", RetryAfter: 10 * time.Second}
	case r.counts.full(client, r.opts.MaxSockets):
		return errTooManyAnonymous()
	}
	return nil
}

// claim sets the caller of a member. It returns false when the user has too many of that
// kind in use, when the network has too many anonymous members, or when the member has been
// closed.
func (r *Sockets) claim(m member, c Caller, limit int, same func(member) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, open := r.members[m]
	if !open {
		return false
	}
	if c.User.IsZero() {
		client := anonymousClient{networks: o.client.networks, anonymous: true}
		if r.counts.full(client, r.opts.MaxSockets) {
			return false
		}
		r.counts.remove(o.client)
		r.counts.add(client)
		o.client = client
		r.members[m] = o
		return true
	}
	if !r.makeRoom(c.User, limit, same) {
		return false
	}
	r.counts.remove(o.client)
	if o.element != nil {
		r.anonymous.Remove(o.element)
	}
	o = owner{user: c.User}
	if r.opts.Watch != nil && !c.Session.IsZero() {
		o.unwatch = r.opts.Watch(c.Session, func() { go m.shut(closeForbidden, reasonSessionEnded) })
	}
	if c.Recheck != nil {
		o.check = time.AfterFunc(r.opts.CheckEvery, func() { r.check(m, c) })
	}
	r.members[m] = o
	r.users[c.User] = append(r.users[c.User], m)
	return true
}

// makeRoom reports whether a user may have another member of a kind. At the limit it closes
// the oldest one that is not in use: a forgotten page must not lock out the one that is
// being looked at. mu is held.
func (r *Sockets) makeRoom(user id.User, limit int, same func(member) bool) bool {
	n := 0
	var unused member
	for _, m := range r.users[user] {
		if !same(m) {
			continue
		}
		n++
		if unused == nil && m.unused() {
			unused = m
		}
	}
	if n < limit {
		return true
	}
	if unused == nil {
		return false
	}
	r.remove(unused)
	go unused.shut(closeTryLater, reasonTooManySockets)
	return true
}

// DefaultInitTimeout is how long a socket may take from the upgrade to connection_init.
const DefaultInitTimeout = 5 * time.Second

// checkTimeout bounds one check of a caller. A check that fails for a reason other than
// the caller's rights leaves the member open until the token expires: admin pages keep
// their live figures while the database is unreachable.
const checkTimeout = 4 * time.Second

// check closes a member whose caller has lost the rights; otherwise it schedules the next
// check. It runs on its timer's goroutine.
func (r *Sockets) check(m member, c Caller) {
	ctx, cancel := context.WithTimeout(c.Context, checkTimeout)
	defer cancel()
	if err := c.Recheck(ctx); err != nil && forbids(err) {
		m.shut(closeForbidden, reasonForbidden)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, open := r.members[m]; open {
		o.check.Reset(r.opts.CheckEvery)
	}
}

// forbids reports whether an error concerns the caller's rights, and not a service that
// could not check them.
func forbids(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.Unauthenticated || code == fault.Forbidden
}

func (r *Sockets) leave(m member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(m)
	r.signalIdle()
}

// remove removes a member from all counts. mu is held.
func (r *Sockets) remove(m member) {
	o, open := r.members[m]
	if !open {
		return
	}
	delete(r.members, m)
	r.counts.remove(o.client)
	if o.element != nil {
		r.anonymous.Remove(o.element)
	}
	if o.unwatch != nil {
		o.unwatch()
	}
	if o.check != nil {
		o.check.Stop()
	}
	if !o.user.IsZero() {
		rest := slices.DeleteFunc(r.users[o.user], func(other member) bool { return other == m })
		if len(rest) == 0 {
			delete(r.users, o.user)
		} else {
			r.users[o.user] = rest
		}
	}
}

// signalIdle ends a drain once no members are left. mu is held.
func (r *Sockets) signalIdle() {
	if r.draining && len(r.members) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// eventStream is an SSE stream as a member.
type eventStream struct{ cancel context.CancelCauseFunc }

func (s *eventStream) shut(_ websocket.StatusCode, reason string) {
	s.cancel(fault.New(fault.Unavailable, reason))
}

func (s *eventStream) unused() bool { return false }

// joinStream adds an SSE stream and closes it when the token expires. left must be called
// at the end of the stream.
func (r *Sockets) joinStream(c Caller, cancel context.CancelCauseFunc) (left func(), err error) {
	s := &eventStream{cancel: cancel}
	if err := r.enter(c.Context, s, !c.User.IsZero()); err != nil {
		return nil, err
	}
	isStream := func(m member) bool { _, ok := m.(*eventStream); return ok }
	if !r.claim(s, c, r.opts.MaxStreams, isStream) {
		r.leave(s)
		return nil, fault.New(fault.RateLimited, "Too many streams are open.")
	}
	if c.ExpiresAt.IsZero() {
		return func() { r.leave(s) }, nil
	}
	expiry := time.AfterFunc(time.Until(c.ExpiresAt), func() { s.shut(closeForbidden, reasonTokenExpired) })
	return func() { expiry.Stop(); r.leave(s) }, nil
}
