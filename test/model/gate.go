package model

// Bounds of a Sale. Buyers and items beyond those that a test uses stay zero.
const (
	Buyers = 4
	Items  = 2
	Keys   = 4 // idempotency keys of a buyer, from 1; 0 = none
)

// Task names an order task, or an offer; 0 = none.
type Task int16

// State is the state of a gate.
type State int8

// States of a gate. A gate that is Loading has its former contents until it is opened.
const (
	Absent State = iota
	Loading
	Open
	Paused
	Ended
)

// Code is the reply to an attempt. The numbers are those of lua/reserve.lua.
type Code int8

// Replies to an attempt.
const (
	Accepted         Code = 1
	Replayed         Code = 2
	KeyMismatch      Code = 3
	NotLoaded        Code = 4
	GatePaused       Code = 5
	GateEnded        Code = 7
	PathInvalid      Code = 8
	AlreadyHolding   Code = 9
	OverLimit        Code = 10
	SoldOut          Code = 11
	TooFewLeft       Code = 12
	OverSaleLimit    Code = 14
	OverContactLimit Code = 15
	OverAddressLimit Code = 16
	OverCode         Code = 17
	TooManyExpiries  Code = 99 // of a path token: the buyer has to wait
)

// Persons are what joins accounts of one human, and the code and the share of the buyer, from 1;
// 0 = nothing. A code has as many uses as its number.
type Persons struct{ Contact, Address, Code, Share int8 }

// Shares is the number of shares of an item.
const Shares = 2

// Share is what an access rule keeps of an item for its buyers.
type Share struct {
	Units, Taken int8
	Over         bool // the units are for all buyers
}

// left returns the units that others cannot take.
func (s Share) left() int8 {
	if s.Over {
		return 0
	}
	return max(0, s.Units-s.Taken)
}

// Reservation is a buyer's reservation of an item; Task 0 = none.
type Reservation struct {
	Task    Task
	Units   int8
	Key     int8
	Persons Persons
}

// Permit is the right to one attempt; Epoch 0 = none.
type Permit struct {
	Epoch   int8
	Serial  int16 // tells the tokens of a buyer apart
	Expired bool
}

// usable reports whether the permit lets an attempt through.
func (p Permit) usable() bool { return p.Epoch > 0 && !p.Expired }

// past is what an idempotency key took.
type past struct {
	task  Task
	item  int8
	units int8
}

// Gate is the gate of an item.
type Gate struct {
	State    State
	Built    bool // it was opened before
	Waiting  bool // units are for the waitlist
	Epoch    int8
	Limit    int8
	Total    int8
	Stock    int8
	Reserved int8
	Revision int16  // of the sale that set the state
	Acts     uint16 // adjustments counted, a bit each
	Shares   [Shares]Share
	Held     [Buyers]Reservation
	Permits  [Buyers]Permit
}

// spare returns the units that other shares do not keep from a buyer of a share, and those that the
// share keeps for the buyer.
func (g *Gate) spare(share int8) (spare, own int8) {
	spare = g.Stock
	for i, s := range g.Shares {
		if int8(i) == share-1 {
			own = s.left()
		} else {
			spare -= s.left()
		}
	}
	return spare, own
}

// free returns the units that a buyer of a share may take.
func (g *Gate) free(share int8) int8 {
	spare, own := g.spare(share)
	if g.Waiting {
		return min(own, g.Stock)
	}
	return spare
}

// count counts units that buyers of a share take or return, and those that left the sale.
func (g *Gate) count(share, units, lost int8) {
	if share > 0 {
		s := &g.Shares[share-1]
		s.Taken, s.Units = max(0, s.Taken+units), max(0, s.Units-lost)
	}
}

// loaded reports whether the contents can be read.
func (g *Gate) loaded() bool { return g.State != Absent && g.Built }

// refusal returns why no units can be taken; 0 = they can.
func (g *Gate) refusal() Code {
	switch {
	case !g.loaded():
		return NotLoaded
	case g.State == Ended:
		return GateEnded
	case g.State != Open:
		return GatePaused
	}
	return 0
}

// stock returns the stock that a reply has.
func (g *Gate) stock() int8 {
	if !g.loaded() {
		return 0
	}
	return g.Stock
}

// path is the last unused path token of a person.
type path struct {
	noted bool
	buyer int8
	item  int8
}

// Sale is what Redis has of a sale.
type Sale struct {
	Limit    int8 // per buyer over all items; 0 = none
	Gates    [Items]Gate
	Expiries [Buyers]int8

	keys            [Buyers][Keys + 1]past
	contactExpiries [Buyers + 1]int8 // by contact
	addressExpiries [Buyers + 1]int8
	contactPaths    [Buyers + 1]path
	addressPaths    [Buyers + 1]path
	countedAs       [Buyers]Persons // of the last path token
}

// Attempt is an attempt of a buyer to take units.
type Attempt struct {
	Buyer, Item int8
	Units       int8
	Task        Task
	Key         int8
	Permit      Permit
	Persons     Persons
}

// Reply is the reply to an attempt.
type Reply struct {
	Code  Code
	Task  Task // that the reply names; 0 = none
	Stock int8 // after the attempt
	Left  int8 // units that the limits leave; of replies over a limit
}

// repeated returns the reply to a repeated idempotency key; false = the key is new.
func (s *Sale) repeated(a Attempt) (Reply, bool) {
	g := &s.Gates[a.Item]
	var before past
	if a.Key > 0 {
		before = s.keys[a.Buyer][a.Key]
		if held := g.Held[a.Buyer]; before.task == 0 && held.Task != 0 && held.Key == a.Key {
			before = past{held.Task, a.Item, held.Units}
		}
	}
	if before.task == 0 {
		return Reply{}, false
	}
	code := KeyMismatch
	switch {
	case before.item == a.Item && before.units == a.Units && before.task == a.Task:
		code = Accepted // sent again after a lost reply
	case before.item == a.Item && before.units == a.Units:
		code = Replayed
	}
	return Reply{Code: code, Task: before.task, Stock: g.stock()}, true
}

// Reserve decides an attempt and takes its units.
func (s *Sale) Reserve(a Attempt) Reply {
	if r, repeated := s.repeated(a); repeated {
		return r
	}
	g := &s.Gates[a.Item]
	r := Reply{Stock: g.stock()}
	held, why := g.Held[a.Buyer].Task, g.refusal()
	free := g.free(a.Persons.Share)
	none := why != 0 || free <= 0
	switch {
	case why == NotLoaded:
		r.Code = why
	case none && held != 0:
		r.Code, r.Task = AlreadyHolding, held
	case why != 0:
		r.Code = why
	case !g.Permits[a.Buyer].usable() || a.Permit != g.Permits[a.Buyer]:
		r.Code = SoldOut // a new path token would not help
		if !none {
			r.Code, r.Task = PathInvalid, held
		}
	case held != 0:
		r.Code, r.Task = AlreadyHolding, held
	default:
		if r.Code, r.Left = s.overLimit(a); r.Code != 0 {
			return r
		}
		switch {
		case none:
			r.Code = SoldOut
		case free < a.Units:
			r.Code, r.Stock = TooFewLeft, free
		default:
			s.take(a)
			r = Reply{Code: Accepted, Task: a.Task, Stock: g.Stock}
		}
	}
	return r
}

// take reserves the units of an attempt.
func (s *Sale) take(a Attempt) {
	g := &s.Gates[a.Item]
	g.Stock, g.Reserved = g.Stock-a.Units, g.Reserved+a.Units
	g.count(a.Persons.Share, a.Units, 0)
	g.Held[a.Buyer] = Reservation{a.Task, a.Units, a.Key, a.Persons}
	g.Permits[a.Buyer] = Permit{}
	s.keep(a.Buyer, a.Item, g.Held[a.Buyer])
}

// keep records the idempotency key of a reservation for good; the first record stays.
func (s *Sale) keep(buyer, item int8, r Reservation) {
	if r.Key > 0 && s.keys[buyer][r.Key].task == 0 {
		s.keys[buyer][r.Key] = past{r.Task, item, r.Units}
	}
}

// units returns how many units of an item, or of all items in a sale with a limit, the
// reservations have that match.
func (s *Sale) units(item int8, match func(buyer int8, r *Reservation) bool) (n int8) {
	for i := range s.Gates {
		if s.Limit == 0 && int8(i) != item {
			continue
		}
		for b := range s.Gates[i].Held {
			if r := &s.Gates[i].Held[b]; r.Task != 0 && match(int8(b), r) {
				n += r.Units
			}
		}
	}
	return n
}

// room returns what the limits leave to a buyer, and to the contact, the address and the code; -1 = not
// counted. A code is counted over all items.
func (s *Sale) room(buyer, item int8, p Persons) (own, contact, address, code int8) {
	most := s.Gates[item].Limit
	own, contact, address, code = most, -1, -1, -1
	if p.Code > 0 {
		code = p.Code
		for i := range s.Gates {
			for _, r := range s.Gates[i].Held {
				if r.Task != 0 && r.Persons.Code == p.Code {
					code -= r.Units
				}
			}
		}
		code = max(0, code)
	}
	if s.Limit > 0 {
		most = s.Limit
		own = most - s.units(item, func(b int8, _ *Reservation) bool { return b == buyer })
	}
	if p.Contact > 0 {
		contact = max(0, most-s.units(item, func(_ int8, r *Reservation) bool { return r.Persons.Contact == p.Contact }))
	}
	if p.Address > 0 {
		address = max(0, most-s.units(item, func(_ int8, r *Reservation) bool { return r.Persons.Address == p.Address }))
	}
	return max(0, own), contact, address, code
}

// overLimit returns the limit that an attempt exceeds, and what it leaves; 0 = none.
func (s *Sale) overLimit(a Attempt) (Code, int8) {
	own, contact, address, code := s.room(a.Buyer, a.Item, a.Persons)
	limit := s.Gates[a.Item].Limit
	switch {
	case a.Units > limit:
		return OverLimit, min(limit, own)
	case a.Units > own && s.Limit > 0:
		return OverSaleLimit, own
	case a.Units > own:
		return OverLimit, own
	case contact >= 0 && a.Units > contact:
		return OverContactLimit, contact
	case address >= 0 && a.Units > address:
		return OverAddressLimit, address
	case code >= 0 && a.Units > code:
		return OverCode, code
	}
	return 0, 0
}

// Issue gives a buyer a path token with a serial number, or one that expires at once. A token in
// place of a usable one has its expiry. The captcha is waived, and there are permits for all.
func (s *Sale) Issue(buyer, item int8, p Persons, serial int16, expired bool) (Reply, Permit) {
	g := &s.Gates[item]
	why := g.refusal()
	if g.State == Loading && why != NotLoaded {
		why = GatePaused
	}
	closed := why == NotLoaded || g.State == Loading
	switch {
	case closed:
		return Reply{Code: why}, Permit{}
	case g.Held[buyer].Task != 0:
		return Reply{Code: AlreadyHolding, Task: g.Held[buyer].Task}, Permit{}
	case why != 0:
		return Reply{Code: why}, Permit{}
	}
	if code := s.overPerson(buyer, item, p); code != 0 {
		return Reply{Code: code}, Permit{}
	}
	if g.Stock > 0 {
		s.expireUnused(buyer, item)
	}
	if s.Expiries[buyer] >= freeExpiries || p.Contact > 0 && s.contactExpiries[p.Contact] >= freeExpiries ||
		p.Address > 0 && s.addressExpiries[p.Address] >= freeExpiries {
		return Reply{Code: TooManyExpiries}, Permit{}
	}
	if g.free(p.Share) <= 0 {
		return Reply{Code: SoldOut}, Permit{}
	}
	expired = expired && !g.Permits[buyer].usable()
	for i := range s.Gates { // the first token of the sale is void
		if s.Gates[i].Permits[buyer].usable() {
			s.Gates[i].Permits[buyer] = Permit{}
		}
	}
	for b := range g.Permits {
		s.expireUnused(int8(b), item)
	}
	g.Permits[buyer] = Permit{Epoch: g.Epoch, Serial: serial, Expired: expired}
	s.countedAs[buyer] = p
	if p.Contact > 0 {
		s.contactPaths[p.Contact] = path{true, buyer, item}
	}
	if p.Address > 0 {
		s.addressPaths[p.Address] = path{true, buyer, item}
	}
	return Reply{Code: Accepted}, g.Permits[buyer]
}

// freeExpiries is the number of expiries from which a buyer has to wait, longer than a test lasts.
const freeExpiries = 2

// overPerson returns the limit that leaves a buyer nothing; 0 = none. The last unit of a person is
// for the account with an unused path token.
func (s *Sale) overPerson(buyer, item int8, p Persons) Code {
	own, contact, address, uses := s.room(buyer, item, p)
	least, code := int8(-1), Code(0)
	if contact >= 0 {
		least, code = contact, OverContactLimit
	}
	if address >= 0 && (least < 0 || address < least) {
		least, code = address, OverAddressLimit
	}
	switch {
	case own == 0 && s.Limit > 0:
		return OverSaleLimit
	case own == 0:
		return OverLimit
	case least == 0:
		return code
	}
	other := func(t path) bool {
		return t.noted && t.buyer != buyer && s.Gates[t.item].Permits[t.buyer].usable()
	}
	switch {
	case least == 1 && p.Contact > 0 && other(s.contactPaths[p.Contact]):
		return OverContactLimit
	case least == 1 && p.Address > 0 && other(s.addressPaths[p.Address]):
		return OverAddressLimit
	case uses == 0:
		return OverCode
	}
	return 0
}

// expireUnused counts an expired path token.
func (s *Sale) expireUnused(buyer, item int8) {
	if t := &s.Gates[item].Permits[buyer]; t.Expired {
		*t = Permit{}
		s.expire(buyer, s.countedAs[buyer])
	}
}

// expire counts an expiry.
func (s *Sale) expire(buyer int8, p Persons) {
	s.Expiries[buyer]++
	if p.Contact > 0 {
		s.contactExpiries[p.Contact]++
	}
	if p.Address > 0 {
		s.addressExpiries[p.Address]++
	}
}

// End is what becomes of released units.
type End int8

// Ends of units.
const (
	Return    End = iota
	Oversold      // Postgres does not have them
	Withdrawn     // they are no longer part of the sale
)

// Release is a release of a reservation, or of all but some of its units.
type Release struct {
	Buyer, Item int8
	Task        Task
	Expired     bool
	End         End
	Keep        int8
}

// Releases of a reservation.
const (
	Released        = 1
	NothingReleased = 0
	ReleaseLater    = -2 // the gate is being built
)

// Release returns the units of a reservation once.
func (s *Sale) Release(r Release) int {
	g := &s.Gates[r.Item]
	if g.State == Loading {
		return ReleaseLater
	}
	held := g.Held[r.Buyer]
	if !g.loaded() || held.Task != r.Task || held.Task == 0 || r.Keep > 0 && held.Units <= r.Keep {
		return NothingReleased
	}
	units := held.Units - r.Keep
	returned := units
	switch r.End {
	case Oversold:
		returned = min(units, max(0, -g.Stock))
	case Withdrawn:
		returned = 0
	case Return:
	}
	if r.End != Return {
		g.Total = g.Stock + returned + g.Reserved - units
	}
	g.Stock, g.Reserved = g.Stock+returned, g.Reserved-units
	g.count(held.Persons.Share, -units, units-returned)
	s.keep(r.Buyer, r.Item, held)
	if g.Held[r.Buyer].Units = r.Keep; r.Keep == 0 {
		g.Held[r.Buyer] = Reservation{}
	}
	if r.Expired {
		s.expire(r.Buyer, held.Persons)
	}
	return Released
}

// Reacquire codes, those of lua/reacquire.lua.
const (
	Reacquired         = 1
	ReacquiredBefore   = 2
	ReacquireTooFew    = 0
	ReacquireNoGate    = -1
	ReacquireNotYet    = -2
	ReacquireOther     = -3
	ReacquireOverLimit = -4
)

// Reacquire reserves units whatever the state of the gate: for an offer of the waitlist, or for
// an order that has lost its reservation. former is the task of that reservation.
func (s *Sale) Reacquire(a Attempt, former Task) int {
	g := &s.Gates[a.Item]
	held := g.Held[a.Buyer].Task
	switch {
	case g.State == Absent:
		return ReacquireNoGate
	case g.State == Loading || !g.loaded():
		return ReacquireNotYet
	case held == a.Task:
		return ReacquiredBefore
	case held != 0 && held == former:
		return ReacquireNotYet
	case held != 0:
		return ReacquireOther
	}
	own, contact, address, code := s.room(a.Buyer, a.Item, a.Persons)
	if s.Limit > 0 && a.Units > own || contact >= 0 && a.Units > contact || address >= 0 && a.Units > address ||
		code >= 0 && a.Units > code {
		return ReacquireOverLimit
	}
	if spare, _ := g.spare(a.Persons.Share); spare < a.Units {
		return ReacquireTooFew
	}
	g.Stock, g.Reserved = g.Stock-a.Units, g.Reserved+a.Units
	g.count(a.Persons.Share, a.Units, 0)
	g.Held[a.Buyer] = Reservation{a.Task, a.Units, a.Key, a.Persons}
	return Reacquired
}

// Redeem turns the reservation of an offer into one of an order.
func (s *Sale) Redeem(a Attempt, offer Task) Reply {
	if r, repeated := s.repeated(a); repeated {
		return r
	}
	g := &s.Gates[a.Item]
	r := Reply{Code: g.refusal(), Stock: g.stock()}
	held := g.Held[a.Buyer]
	switch {
	case r.Code != 0:
	case held.Task == 0:
		r.Code = PathInvalid
	case held.Task != offer:
		r.Code, r.Task = AlreadyHolding, held.Task
	case held.Units != a.Units:
		r.Code = PathInvalid
	default:
		g.Held[a.Buyer] = Reservation{a.Task, a.Units, a.Key, held.Persons}
		s.keep(a.Buyer, a.Item, g.Held[a.Buyer])
		r.Code, r.Task = Accepted, a.Task
	}
	return r
}

// Adjust codes, those of lua/adjust.lua.
const (
	Adjusted       = 1
	AdjustedBefore = 2
	AdjustNothing  = 3
	AdjustTooFew   = 0
	AdjustNoGate   = -1
	AdjustBuilding = -2
)

// Adjust adds units once per act, 1 to 16, or removes available ones. undoes is an act; 0 = none.
func (s *Sale) Adjust(item, act, units, undoes int8) int {
	g := &s.Gates[item]
	bit := func(act int8) uint16 { return 1 << (act - 1) }
	spare, _ := g.spare(0)
	switch {
	case g.State == Absent:
		return AdjustNoGate
	case g.State == Loading || !g.loaded():
		return AdjustBuilding
	case g.Acts&bit(act) != 0:
		return AdjustedBefore
	case undoes > 0 && g.Acts&bit(undoes) == 0:
		return AdjustNothing
	case units < 0 && spare+units < 0:
		return AdjustTooFew
	}
	g.Stock, g.Total, g.Acts = g.Stock+units, g.Total+units, g.Acts|bit(act)
	return Adjusted
}

// SetState sets the state of a gate for a revision of its sale.
func (s *Sale) SetState(item, epoch int8, revision int16, state State) bool {
	g := &s.Gates[item]
	if g.State == Absent || g.State == Loading || state == Open && epoch != g.Epoch ||
		g.Revision > revision && state != Ended {
		return false
	}
	g.State, g.Revision = state, max(g.Revision, revision)
	return true
}

// Begin closes the gate of an item to build it under a higher epoch.
func (s *Sale) Begin(item, epoch int8) bool {
	g := &s.Gates[item]
	if g.Epoch >= epoch {
		return false
	}
	g.State, g.Epoch, g.Permits = Loading, epoch, [Buyers]Permit{}
	return true
}

// Contents are what a gate is built from.
type Contents struct {
	State      State
	Epoch      int8
	Limit      int8
	Total      int8
	Stock      int8
	BuyersWait bool
	Revision   int16
	Acts       uint16
	Shares     [Shares]Share // of which Taken follows from Held
	Held       [Buyers]Reservation
}

// Open replaces the contents of a gate that is being built under an epoch.
func (s *Sale) Open(item int8, c Contents) bool {
	g := &s.Gates[item]
	if g.Epoch != c.Epoch || g.State != Loading {
		return false
	}
	for b, former := range g.Held {
		s.keep(int8(b), item, former)
	}
	*g = Gate{State: c.State, Built: true, Waiting: c.BuyersWait || g.Waiting, Epoch: c.Epoch, Limit: c.Limit,
		Total: c.Total, Stock: c.Stock, Revision: c.Revision, Acts: c.Acts, Shares: c.Shares, Held: c.Held}
	for _, r := range c.Held {
		g.Reserved += r.Units
		g.count(r.Persons.Share, r.Units, 0)
	}
	left := c.Stock
	for i := range g.Shares { // keeps no more than there are
		s := &g.Shares[i]
		kept := max(0, min(s.Units-s.Taken, left))
		left -= kept
		s.Units = min(s.Units, s.Taken+kept)
	}
	return true
}

// Unload removes the gates of a sale that is over, or that has an epoch up to the given one.
func (s *Sale) Unload(epoch int8) {
	for i := range s.Gates {
		g := &s.Gates[i]
		for b, held := range g.Held {
			s.keep(int8(b), int8(i), held)
		}
		if g.State != Absent && g.Epoch <= epoch {
			*g = Gate{}
		}
	}
}
