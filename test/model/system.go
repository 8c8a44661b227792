package model

// Attempts is how many order tasks a buyer has of an item.
const Attempts = 2

// Row is what the record has of a task.
type Row int8

// Rows of a task. A row begins as Live or Failed, and never changes between the two.
const (
	NoRow Row = iota
	Live
	Due // the order has ended, its unit is to be released
	Returned
	Failed // its unit is to be released
	FailedReleased
)

// Message is where the message of a task is.
type Message int8

// Places of a message. Redis may lose one that a worker still has.
const (
	NoMessage Message = iota
	InStream
	WithWorker
)

// Order is an order task with its message and its row.
type Order struct {
	Accepted bool
	Row      Row
	Oversold bool // it failed because the record had no unit
	Message  Message
	Epoch    int8 // of the message
	Seen     bool // the present build has read the message
	Lost     bool // Redis was lost since the task was accepted
	// Late: the worker did not append the message in time for a build. It could for a later one, and the oldest
	// reservation would win: a task that was accepted in between may fail then. That is left out here.
	Late bool
}

// Item is the row of an item.
type Item struct {
	Total, Available, Held int8

	GateEpoch int8     // of the newest build that has read the row
	Acts      uint16   // adjustments in the row
	next      Contents // of the gate that is being built
}

// Phase is how far a build is.
type Phase int8

// Phases of a build. In between, all else goes on.
const (
	Idle    Phase = iota
	Begun         // the epoch is taken and all gates are closed
	Read          // the stream is read
	Filled        // the first item is read and its reservations are written
	AllRead       // those of all items are
)

// Bounds bound the states of a System.
type Bounds struct {
	Buyers, Items int8
	Units         int8 // of each item
	Attempts      int8 // of a buyer on an item
	Tasks         int8 // of all buyers together
	Losses        int8 // of Redis, of the process that builds, or builds without a loss
	Paths         bool // issuing a path token is a step; else it comes with the attempt
	Pauses        int8 // changes of the sale's status
	Adjusts       int8 // units that operators add, to the first item
}

// limit is the purchase limit of an item: all its units.
func (b Bounds) limit() int8 { return b.Units + b.Adjusts }

// System is one sale in Redis and in the record, with what is under way between the two.
type System struct {
	Bounds   Bounds
	Sale     Sale
	Items    [Items]Item
	Orders   [Buyers][Items][Attempts]Order
	Epoch    int8
	Revision int16
	Paused   bool
	Phase    Phase
	Losses   int8
	Pauses   int8
	Adjusts  int8
	Tasks    int8
}

// NewSystem returns a sale whose gates are open.
func NewSystem(b Bounds) System {
	s := System{Bounds: b, Epoch: 1}
	for i := range b.Items {
		s.Items[i] = Item{Total: b.Units, Available: b.Units, GateEpoch: 1}
		s.Sale.Begin(i, 1)
		s.Sale.Open(i, Contents{State: Open, Epoch: 1, Limit: b.limit(), Total: b.Units, Stock: b.Units})
	}
	return s
}

func (s *System) task(b, i, t int8) Task {
	return 1 + (Task(b)*Items+Task(i))*Attempts + Task(t)
}

// status is the state that gates should have.
func (s *System) status() State {
	if s.Paused {
		return Paused
	}
	return Open
}

// lost reports whether a gate is not in Redis under the sale's epoch, so that the sale is built again.
func (s *System) lost() bool {
	for i := range s.Bounds.Items {
		if g := &s.Sale.Gates[i]; g.Epoch != s.Epoch || g.State == Absent || g.State == Loading {
			return true
		}
	}
	return false
}

// reserve makes an attempt on one unit; false = it was refused.
func (s *System) reserve(b, i, t int8) bool {
	g := &s.Sale.Gates[i]
	if !s.Bounds.Paths {
		s.Sale.Issue(b, i, Persons{}, 1, false)
	}
	r := s.Sale.Reserve(Attempt{Buyer: b, Item: i, Units: 1, Task: s.task(b, i, t), Permit: g.Permits[b]})
	if r.Code != Accepted {
		return false
	}
	s.Orders[b][i][t] = Order{Accepted: true, Message: InStream, Epoch: g.Epoch}
	s.Tasks++
	return true
}

// live reports whether a buyer has a live order of an item.
func (s *System) live(b, i int8) bool {
	for _, o := range s.Orders[b][i] {
		if o.Row == Live {
			return true
		}
	}
	return false
}

// deliver hands the message of a task to a worker; false = it has to be delivered again. With crash
// the worker stops before its transaction.
func (s *System) deliver(b, i, t int8, crash bool) bool {
	o, item := &s.Orders[b][i][t], &s.Items[i]
	switch {
	case o.Row == FailedReleased: // a reservation that came with the message is released as well
		o.Row = Failed
		return true
	case o.Row != NoRow:
		return true
	case s.live(b, i):
		o.Row = Failed
		return true
	}
	if o.Epoch < item.GateEpoch {
		switch s.Sale.Reacquire(Attempt{Buyer: b, Item: i, Units: 1, Task: s.task(b, i, t)}, 0) {
		case Reacquired, ReacquiredBefore:
			if crash || s.Sale.Gates[i].Epoch < item.GateEpoch {
				return false
			}
			o.Epoch = s.Sale.Gates[i].Epoch
		case ReacquireNotYet, ReacquireNoGate:
			return false
		default:
			o.Row = Failed
			return true
		}
	}
	if item.Available < 1 {
		o.Row, o.Oversold = Failed, true
		return true
	}
	o.Row, item.Available, item.Held = Live, item.Available-1, item.Held+1
	return true
}

// expire ends a live order.
func (s *System) expire(b, i, t int8) {
	s.Orders[b][i][t].Row = Due
	s.Items[i].Available, s.Items[i].Held = s.Items[i].Available+1, s.Items[i].Held-1
}

// release returns the unit of an ended task to the gate, and marks its row unless the process stops
// before. A gate that is being built comes first.
func (s *System) release(b, i, t int8, crash bool) {
	o, end := &s.Orders[b][i][t], Return
	if o.Oversold {
		end = Oversold
	}
	if s.Sale.Release(Release{Buyer: b, Item: i, Task: s.task(b, i, t), End: end}) == ReleaseLater {
		return
	}
	switch {
	case crash:
	case o.Row == Due:
		o.Row = Returned
	default:
		o.Row = FailedReleased
	}
}

// missing reports whether a task has neither an end nor a message in the stream.
func (s *System) missing(b, i, t int8) bool {
	o := &s.Orders[b][i][t]
	return o.Accepted && o.Row == NoRow && o.Message != InStream && s.Sale.Gates[i].State != Loading
}

func (s *System) reserved(b, i, t int8) bool {
	return s.Sale.Gates[i].Held[b].Task == s.task(b, i, t)
}

// begin takes the next epoch and closes all gates.
func (s *System) begin() {
	s.Epoch++
	for i := range s.Bounds.Items {
		s.Sale.Begin(i, s.Epoch)
		s.Sale.Gates[i] = Gate{State: Loading, Epoch: s.Epoch} // of the former contents nothing is used here
	}
	s.Phase = Begun
}

// build makes the next step of a build.
func (s *System) build() {
	switch s.Phase {
	case Begun:
		s.each(func(_, _, _ int8, o *Order) { o.Seen, o.Late = o.Message == InStream, o.Message == WithWorker })
		s.Phase = Read
	case Read, Filled:
		s.fill(int8(s.Phase - Read))
		if s.Phase++; s.Bounds.Items == 1 {
			s.Phase = AllRead
		}
	case AllRead:
		for i := range s.Bounds.Items {
			c := s.Items[i].next
			c.State, c.Revision = s.status(), s.Revision
			s.Sale.Open(i, c)
			s.Items[i].next = Contents{}
		}
		s.each(func(_, _, _ int8, o *Order) { o.Seen = false })
		s.Phase = Idle
	case Idle:
	}
}

// fill reads an item of the record, and writes the reservations of its live orders and of the unwritten
// messages that were read before: of each buyer one, of messages the oldest.
func (s *System) fill(i int8) {
	item := &s.Items[i]
	item.GateEpoch = s.Epoch
	c := Contents{Epoch: s.Epoch, Limit: s.Bounds.limit(), Total: item.Total, Stock: item.Available, Acts: item.Acts}
	for _, row := range []Row{Live, NoRow} {
		s.each(func(b, of, t int8, o *Order) {
			if of != i || o.Row != row || row == NoRow && !o.Seen || c.Held[b].Task != 0 {
				return
			}
			c.Held[b] = Reservation{Task: s.task(b, i, t), Units: 1}
			if row == NoRow {
				c.Stock--
			}
		})
	}
	item.next = c
}

// each visits the tasks.
func (s *System) each(visit func(b, i, t int8, o *Order)) {
	for b := range s.Bounds.Buyers {
		for i := range s.Bounds.Items {
			for t := range s.Bounds.Attempts {
				visit(b, i, t, &s.Orders[b][i][t])
			}
		}
	}
}

// lose removes the gates. What becomes of each message is decided after, by where.
func (s *System) lose(where func(b, i, t int8) Message) {
	s.Losses++
	s.Sale = Sale{}
	s.Phase = Idle
	s.each(func(b, i, t int8, o *Order) {
		o.Seen, o.Lost = false, o.Accepted
		if o.Message == InStream {
			o.Message = where(b, i, t)
		}
	})
	for i := range s.Items {
		s.Items[i].next = Contents{}
	}
}

// setStatus pauses or resumes the sale, and its gates.
func (s *System) setStatus() {
	s.Paused, s.Revision, s.Pauses = !s.Paused, s.Revision+1, s.Pauses+1
	s.follow()
}

// follow sets the state of gates that differ from the sale.
func (s *System) follow() {
	for i := range s.Bounds.Items {
		s.Sale.SetState(i, s.Epoch, s.Revision, s.status())
	}
}

// add adds a unit to the row of the first item; the gate follows later.
func (s *System) add() {
	s.Adjusts++
	item := &s.Items[0]
	item.Total, item.Available, item.Acts = item.Total+1, item.Available+1, item.Acts|1<<(s.Adjusts-1)
}

// adjust counts the units that were added in the gate, once.
func (s *System) adjust() {
	for act := range s.Adjusts {
		s.Sale.Adjust(0, act+1, 1, 0)
	}
}
