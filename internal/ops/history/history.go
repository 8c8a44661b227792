package drill

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// maxOperations bounds the memory of a history: some for each of MaxBuyers.
	maxOperations = 20 * MaxBuyers
	// stale is how old "sold out" may be: processes refuse from memory.
	stale = time.Second
	// judgeTime bounds the search for an order of a history. Without a result the history counts as a
	// violation.
	judgeTime = 20 * time.Second
)

// kind is the kind of an operation in a history.
type kind string

const (
	took      kind = "took a unit"
	soldOut   kind = "sold out"
	unknown   kind = "no reply" // a call that may have taken a unit
	ended     kind = "returned" // the unit of a task that ended without an order, at any time since the call
	sawOpen   kind = "task is open"
	sawOrder  kind = "task has an order"
	sawFailed kind = "task failed"
)

// operation is what a buyer did or saw of an item between two times.
type operation struct {
	kind        kind
	buyer       int
	task        string
	began, over time.Time

	returns bool // of took: its task ended without an order
}

// history is what the buyers of a drill did and saw of one item. It is safe for concurrent use.
type history struct {
	mu      sync.Mutex
	all     []operation // guarded by mu; at most maxOperations
	dropped int         // guarded by mu; further ones
}

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == maxOperations {
		h.dropped++
		return
	}
	h.all = append(h.all, o)
}

// linearizable is whether the operations of a history have an order, each between its call and its
// reply, in which every reply is right.
type linearizable struct {
	ok         bool
	operations int
	violation  string
}

func (l linearizable) figures() string {
	text := fmt.Sprintf("%d operations", l.operations)
	if l.violation != "" {
		text += ": " + l.violation
	}
	return text
}

// judge looks for an order of the operations on the units of the item, and of those of each buyer.
// stock is the units at the start; -1 = others buy and return units as well, and only what each buyer
// saw is judged. A violation is drawn into a file in dir.
func (h *history) judge(stock int, dir string) linearizable {
	h.mu.Lock()
	defer h.mu.Unlock()
	result := linearizable{operations: len(h.all)}
	if h.dropped > 0 {
		result.violation = fmt.Sprintf("%d more operations were not recorded", h.dropped)
		return result
	}
	units, buyers := h.split()
	deadline := time.Now().Add(judgeTime)
	if stock >= 0 {
		if result.violation = judgePart(unitsModel(stock), units, deadline, "units", dir); result.violation != "" {
			return result
		}
	}
	for buyer, own := range buyers {
		name := fmt.Sprintf("buyer-%d", buyer)
		if result.violation = judgePart(buyerModel(), own, deadline, name, dir); result.violation != "" {
			return result
		}
	}
	result.ok = true
	return result
}

// judgePart returns what is wrong with a part of a history; "" = nothing.
func judgePart(model porcupine.Model, part []porcupine.Operation, deadline time.Time, name, dir string) string {
	result, info := porcupine.CheckOperationsVerbose(model, part, max(time.Millisecond, time.Until(deadline)))
	if result == porcupine.Ok {
		return ""
	}
	path := filepath.Join(dir, "drill-history-"+name+".html")
	said := fmt.Sprintf("the operations of %s have no order (%s), see %s", name, result, path)
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		said += ": " + err.Error()
	}
	return said
}

// split returns the operations on the units of the item, and those of each buyer on the own task.
func (h *history) split() (units []porcupine.Operation, buyers map[int][]porcupine.Operation) {
	if len(h.all) == 0 {
		return nil, nil
	}
	start, end := h.all[0].began, h.all[0].over
	for _, o := range h.all {
		if o.began.Before(start) {
			start = o.began
		}
		if o.over.After(end) {
			end = o.over
		}
	}
	returned := map[string]bool{}
	for _, o := range h.all {
		if o.kind == ended {
			returned[o.task] = true
		}
	}
	buyers = map[int][]porcupine.Operation{}
	for _, o := range h.all {
		o.returns = returned[o.task]
		began, over := o.began, o.over
		ofUnits := true
		switch o.kind {
		case soldOut:
			began = began.Add(-stale)
		case unknown, ended:
			over = end
		case sawOpen, sawOrder, sawFailed:
			ofUnits = false
		case took:
		}
		op := porcupine.Operation{ClientId: o.buyer, Input: o, Call: began.Sub(start).Nanoseconds(),
			Return: over.Sub(start).Nanoseconds()}
		if ofUnits {
			units = append(units, op)
		}
		if o.kind == took || !ofUnits {
			buyers[o.buyer] = append(buyers[o.buyer], op)
		}
	}
	return units, buyers
}

// left is the range of units that may be left, because a call without a reply may have taken one, and
// how many are taken that will return.
type left struct{ least, most, returning int }

// unitsModel is an item with units that are taken and returned.
func unitsModel(stock int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return left{stock, stock, 0} },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(left), input.(operation)
			switch o.kind {
			case took:
				n := left{max(0, s.least-1), s.most - 1, s.returning}
				if o.returns {
					n.returning++
				}
				return s.most > 0, n
			case soldOut:
				return s.least == 0, left{returning: s.returning}
			case unknown:
				return true, left{max(0, s.least-1), s.most, s.returning}
			case ended:
				return s.returning > 0, left{s.least + 1, s.most + 1, s.returning - 1}
			case sawOpen, sawOrder, sawFailed:
			}
			return false, s
		},
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return fmt.Sprintf("%d units left", state.(left).most) },
	}
}

// task is the order task of a buyer.
type task struct {
	id   string
	seen kind // sawOpen, sawOrder or sawFailed; "" = the buyer has none
}

// buyerModel is a buyer with at most one task at a time, which ends once.
func buyerModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return task{} },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(task), input.(operation)
			if o.kind == took {
				return s.seen == "" || s.seen == sawFailed, task{o.task, sawOpen}
			}
			return o.task == s.id && (s.seen == sawOpen || s.seen == o.kind), task{s.id, o.kind}
		},
		DescribeOperation: describe,
		DescribeState: func(state any) string {
			if s := state.(task); s.seen != "" {
				return s.id + ": " + string(s.seen)
			}
			return "no task"
		},
	}
}

func describe(input, _ any) string {
	o := input.(operation)
	return fmt.Sprintf("%s %s", o.kind, o.task)
}
