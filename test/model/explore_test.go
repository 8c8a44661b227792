package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"
)

// step is a step of a System and the state after it.
type step struct {
	act     string
	b, i, t int8
	after   System
}

func (s step) String() string {
	return fmt.Sprintf("%s (buyer %d, item %d, task %d)", s.act, s.b, s.i, s.t)
}

// steps appends all steps that a state allows.
func (s *System) steps(all []step) []step {
	add := func(act string, b, i, t int8, do func(n *System)) {
		all = append(all, step{act, b, i, t, *s})
		n := &all[len(all)-1].after
		do(n)
		n.reduce()
	}
	s.each(func(b, i, t int8, o *Order) {
		switch {
		case !o.Accepted:
			if s.Tasks == s.Bounds.Tasks || t > 0 && !s.Orders[b][i][t-1].Accepted {
				return
			}
			if s.Bounds.Paths && !s.Sale.Gates[i].Permits[b].usable() {
				add("issue", b, i, t, func(n *System) { n.Sale.Issue(b, i, Persons{}, 1, false) })
			}
			add("reserve", b, i, t, func(n *System) { n.reserve(b, i, t) })
			return
		case o.Row == Live:
			add("expire", b, i, t, func(n *System) { n.expire(b, i, t) })
		case o.Row == Due || o.Row == Failed:
			add("release", b, i, t, func(n *System) { n.release(b, i, t, false) })
			add("release, then crash", b, i, t, func(n *System) { n.release(b, i, t, true) })
		}
		if o.Message != NoMessage {
			add("write", b, i, t, func(n *System) {
				if n.deliver(b, i, t, false) {
					n.Orders[b][i][t].Message = NoMessage
				}
			})
			add("write, then crash before the acknowledgement", b, i, t, func(n *System) { n.deliver(b, i, t, false) })
			add("reacquire, then crash", b, i, t, func(n *System) { n.deliver(b, i, t, true) })
		}
		if o.Message == WithWorker && !o.Late && s.Phase == Begun {
			add("append what is in flight", b, i, t, func(n *System) { n.Orders[b][i][t].Message = InStream })
		}
		if s.missing(b, i, t) {
			add("end the lost task", b, i, t, func(n *System) { n.endLost(b, i, t) })
		}
	})
	s.operate(add)
	s.disasters(add)
	return all
}

// reduce gives states that go on alike one form: a message whose task has an order has no effect any
// more, nor has its epoch, and a failed task without a message is over.
func (s *System) reduce() {
	s.each(func(_, _, _ int8, o *Order) {
		if o.Row == Live || o.Row == Due || o.Row == Returned {
			o.Message = NoMessage
		}
		if o.Row == FailedReleased && o.Message == NoMessage {
			o.Row = Returned
		}
		if o.Row != NoRow {
			o.Seen, o.Late, o.Epoch = false, false, 0
		}
		if o.Row == Returned {
			o.Oversold = false
		}
		if o.Row == Live || o.Row == Due || o.Row == Returned {
			o.Lost = false
		}
	})
}

// endLost fails a task that was lost, or sends the message of its reservation again.
func (s *System) endLost(b, i, t int8) {
	if o := &s.Orders[b][i][t]; s.reserved(b, i, t) {
		o.Message, o.Epoch = InStream, s.Sale.Gates[i].Epoch
	} else {
		o.Row = Failed
	}
}

// operate adds the steps of schedulers and operators.
func (s *System) operate(add func(act string, b, i, t int8, do func(n *System))) {
	switch {
	case s.Phase != Idle:
		add("build", 0, 0, int8(s.Phase), (*System).build)
	case s.lost():
		add("begin", 0, 0, 0, (*System).begin)
	}
	if s.Pauses < s.Bounds.Pauses {
		add("pause or resume", 0, 0, 0, (*System).setStatus)
		add("pause or resume, then crash", 0, 0, 0, func(n *System) {
			n.Paused, n.Revision, n.Pauses = !n.Paused, n.Revision+1, n.Pauses+1
		})
	}
	add("follow", 0, 0, 0, (*System).follow)
	if s.Adjusts < s.Bounds.Adjusts {
		add("add a unit", 0, 0, 0, (*System).add)
	}
	if s.Adjusts > 0 {
		add("adjust", 0, 0, 0, (*System).adjust)
	}
}

// disasters adds each way to lose Redis, and the end of the process that builds.
func (s *System) disasters(add func(act string, b, i, t int8, do func(n *System))) {
	if s.Losses >= s.Bounds.Losses {
		return
	}
	if s.Phase != Idle {
		add("the builder crashes", 0, 0, 0, func(n *System) {
			n.Losses, n.Phase = n.Losses+1, Idle
			n.each(func(_, _, _ int8, o *Order) { o.Seen = false })
			for i := range n.Items {
				n.Items[i].next = Contents{}
			}
		})
	}
	if s.Phase == Idle && !s.lost() {
		add("rebuild without a loss", 0, 0, 0, func(n *System) {
			n.Losses++
			n.begin()
		})
	}
	ways, sent := 1, 0
	s.each(func(_, _, _ int8, o *Order) {
		if o.Message == InStream {
			ways, sent = ways*3, sent+1
		}
	})
	for way := range ways {
		add("lose Redis", 0, 0, 0, func(n *System) {
			left := way
			n.lose(func(_, _, _ int8) Message {
				where := Message(left % 3)
				left /= 3
				return where
			})
		})
	}
}

// broken returns the invariant that a state breaks; "" = none.
func (s *System) broken() string {
	for i := range s.Bounds.Items {
		item, g := &s.Items[i], &s.Sale.Gates[i]
		var live int8
		for b := range s.Bounds.Buyers {
			var own int8
			for _, o := range s.Orders[b][i] {
				switch {
				case o.Row == Live:
					own++
				case o.Row == Failed && !o.Lost:
					return "I5: a task failed that was accepted after the last loss"
				}
			}
			if own > 1 {
				return "I3: two live orders of a buyer"
			}
			live += own
		}
		switch {
		case item.Available < 0 || item.Held != live || item.Available+item.Held != item.Total:
			return "I1: the record does not add up"
		case g.State > Loading && g.Stock+g.Reserved != g.Total:
			return "I2: stock and reserved units are not the total"
		case g.State > Loading && s.Losses == 0 && g.Stock < 0:
			return "I2: more units were reserved than there are"
		}
	}
	return ""
}

// maxRounds bounds what it takes to settle a state.
const maxRounds = 64

// settle lets everything that is under way arrive, without further losses, and then sells what is
// left. It returns what does not come to an end; "" = nothing.
func (s *System) settle() string {
	for range maxRounds {
		before := *s
		for s.Phase != Idle || s.lost() {
			if s.Phase == Idle {
				s.begin()
			}
			s.build()
		}
		s.follow()
		s.adjust()
		s.each(func(b, i, t int8, o *Order) {
			if o.Message != NoMessage && s.deliver(b, i, t, false) {
				o.Message = NoMessage
			}
			if o.Row == Due || o.Row == Failed {
				s.release(b, i, t, false)
			}
			if s.missing(b, i, t) {
				s.endLost(b, i, t)
			}
		})
		switch {
		case *s != before:
		case s.drift():
			return "I2: a gate differs from the record, and nothing is under way"
		default:
			return s.sellOut()
		}
	}
	return "I5: the stores do not settle"
}

// drift reports whether the stock of a gate differs from the record while nothing is under way.
func (s *System) drift() bool {
	for i := range s.Bounds.Items {
		if g := &s.Sale.Gates[i]; g.Stock != s.Items[i].Available || g.Total != s.Items[i].Total {
			return true
		}
	}
	return false
}

// sellOut checks that all tasks have ended, and lets a further buyer take all that is left.
func (s *System) sellOut() string {
	open := ""
	s.each(func(b, i, t int8, o *Order) {
		if o.Accepted && o.Row != Live && o.Row != Returned && o.Row != FailedReleased {
			open = fmt.Sprintf("I4: task %d of buyer %d, item %d does not end", t, b, i)
		}
	})
	if open != "" {
		return open
	}
	if s.Paused {
		s.setStatus()
	}
	last := s.Bounds.Buyers
	for i := range s.Bounds.Items {
		g := &s.Sale.Gates[i]
		left := g.Stock
		if left == 0 {
			continue
		}
		_, path := s.Sale.Issue(last, i, Persons{}, 1, false)
		r := s.Sale.Reserve(Attempt{Buyer: last, Item: i, Units: left, Task: -1, Permit: path})
		if r.Code != Accepted || g.Stock != 0 || left != s.Items[i].Available {
			return fmt.Sprintf("I5: %d units of item %d do not sell: %+v", left, i, r)
		}
	}
	return s.broken()
}

// seed of the hashes of states.
var seed = maphash.MakeSeed()

// hash returns a hash that is the same for states that differ only in the order of their buyers, or in
// the numbers of their epochs: of those it counts whether they are the newest.
func (s *System) hash(buffer []byte) uint64 {
	text := append(buffer[:0], byte(s.Revision), flag(s.Paused), byte(s.Phase), byte(s.Losses), byte(s.Pauses),
		byte(s.Adjusts), byte(s.Tasks))
	for i := range s.Bounds.Items {
		g, item := &s.Sale.Gates[i], &s.Items[i]
		text = append(text, byte(g.State), flag(g.Built)|flag(g.Epoch == s.Epoch)<<1|flag(item.GateEpoch == s.Epoch)<<2,
			byte(g.Total), byte(g.Stock), byte(g.Reserved), byte(g.Revision), byte(g.Acts), byte(item.Total),
			byte(item.Available), byte(item.Acts), byte(item.next.Stock), byte(item.next.Total), byte(item.next.Acts))
	}
	var buyers [Buyers][Items * (3 + 3*Attempts)]byte
	for b := range s.Bounds.Buyers {
		own := buyers[b][:0]
		first := s.task(b, 0, 0) - 1
		local := func(t Task) byte { return byte(max(0, t-first)) }
		for i := range s.Bounds.Items {
			g := &s.Sale.Gates[i]
			own = append(own, local(g.Held[b].Task), local(s.Items[i].next.Held[b].Task), flag(g.Permits[b].Epoch > 0))
			for _, o := range s.Orders[b][i] {
				own = append(own, flag(o.Accepted)|flag(o.Seen)<<1|flag(o.Oversold)<<2|
					flag(o.Epoch < s.Items[i].GateEpoch)<<3|flag(o.Lost)<<4|flag(o.Late)<<5, byte(o.Row), byte(o.Message))
			}
		}
	}
	sorted := buyers[:s.Bounds.Buyers]
	slices.SortFunc(sorted, func(a, b [Items * (3 + 3*Attempts)]byte) int { return slices.Compare(a[:], b[:]) })
	for b := range sorted {
		text = append(text, sorted[b][:]...)
	}
	return maphash.Bytes(seed, text)
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// origin is how a state was reached first.
type origin struct {
	parent uint64
	step   uint16
}

// explored is the result of exploreAll.
type explored struct {
	States int
	Steps  int // transitions
	Depth  int // longest shortest story of a state
	// Broken is the invariant that a state breaks, with the shortest story that leads there; "" = none.
	Broken string
	Story  []string
}

// exploreAll visits all states within bounds, the nearest first, and checks the invariants in each,
// and that each can settle. States that differ in the order of their buyers only are one. A state is
// known by a hash of 64 bits: of ten million states two share one with a probability of 1 in 400,000,
// and the second would not be visited.
func exploreAll(b Bounds) explored {
	start := NewSystem(b)
	var buffer [512]byte
	root := start.hash(buffer[:])
	seen := map[uint64]origin{root: {}}
	found := explored{States: 1}
	type node struct {
		state System
		hash  uint64
	}
	level, next := []node{{start, root}}, []node(nil)
	var all []step
	for ; len(level) > 0; level, next = next, level[:0] {
		for _, n := range level {
			all = n.state.steps(all[:0])
			found.Steps += len(all)
			for at := range all {
				after := &all[at].after
				h := after.hash(buffer[:])
				if _, known := seen[h]; known {
					continue
				}
				seen[h] = origin{n.hash, uint16(at)}
				found.States++
				broken := after.broken()
				if broken == "" {
					end := *after
					broken = end.settle()
				}
				if broken != "" {
					found.Broken, found.Story = broken, story(start, seen, h, root)
					return found
				}
				next = append(next, node{*after, h})
			}
		}
		found.Depth++
	}
	return found
}

// story returns the steps that lead to a state.
func story(start System, seen map[uint64]origin, h, root uint64) (lines []string) {
	var path []uint16
	for ; h != root; h = seen[h].parent {
		path = append(path, seen[h].step)
	}
	for _, at := range slices.Backward(path) {
		taken := start.steps(nil)[at]
		lines, start = append(lines, taken.String()), taken.after
	}
	return append(lines, fmt.Sprintf("%+v", start))
}

func TestEveryStateKeepsTheInvariantsAndCanSettle(t *testing.T) {
	t.Parallel()
	explore(t, "losses", Bounds{Buyers: 3, Items: 2, Units: 2, Attempts: 1, Losses: 1, Tasks: 3})
	explore(t, "again", Bounds{Buyers: 2, Items: 1, Units: 1, Attempts: 2, Losses: 2, Tasks: 4})
	explore(t, "operators", Bounds{
		Buyers: 2, Items: 1, Units: 1, Attempts: 1, Losses: 1, Tasks: 2, Paths: true, Pauses: 1, Adjusts: 1,
	})
}

// explore visits all states within bounds.
func explore(t *testing.T, name string, b Bounds) {
	t.Helper()
	began := time.Now()
	found := exploreAll(b)
	t.Logf("%s: %+v: %d states, %d steps, %d levels in %s", name, b, found.States, found.Steps, found.Depth,
		time.Since(began).Round(time.Millisecond))
	if found.Broken != "" {
		t.Fatalf("%s: %s:\n%s", name, found.Broken, strings.Join(found.Story, "\n"))
	}
}
