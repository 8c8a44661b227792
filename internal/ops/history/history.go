// Package history records what buyers did and saw, and searches an order of it in which each reply
// is right (linearizability), with porcupine. It owns no tables or keys, and knows nothing of the
// calls: package drill and the fault tests record theirs.
package history

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// maxOperations bounds the memory of a history: twenty for each buyer of the largest drill.
	maxOperations = 400_000
	// stale is how old "sold out" may be: processes refuse from memory.
	stale = time.Second
	// searchTime bounds the search for an order of a history. Without a result the history counts as a
	// violation.
	searchTime = 20 * time.Second
)

// Kind is the kind of an operation in a history.
type Kind string

// Kinds. Took, SoldOut and Unknown are replies to a call that asks for a unit.
const (
	Took      Kind = "took a unit"
	SoldOut   Kind = "sold out"
	Unknown   Kind = "no reply"           // it may have taken a unit
	Ended     Kind = "returned"           // the unit of a task that ended without an order, at any time since the call
	Released  Kind = "released the order" // its unit returns at any time since the call
	SawOpen   Kind = "task is open"
	SawOrder  Kind = "task has an order"
	SawFailed Kind = "task failed"
	SawNone   Kind = "no order" // of any task of the buyer
)

// Operation is what a buyer did or saw of an item between two times.
type Operation struct {
	Kind        Kind
	Buyer       int    // from 0
	Task        string // of Took, Ended, Released and look-ups
	Began, Over time.Time

	returns bool // of Took: its unit returns
}

// History is what the buyers of an item did and saw. The zero value is empty. It is safe for
// concurrent use.
type History struct {
	mu      sync.Mutex
	all     []Operation // guarded by mu; at most maxOperations
	dropped int         // guarded by mu; further ones
}

// Add adds an operation.
func (h *History) Add(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == maxOperations {
		h.dropped++
		return
	}
	h.all = append(h.all, o)
}

// Result is whether the operations of a history have an order, each between its call and its reply,
// in which every reply is right.
type Result struct {
	OK         bool
	Operations int
	Violation  string // what has no order, and the file of its picture; "" = nothing
}

func (r Result) String() string {
	text := fmt.Sprintf("%d operations", r.Operations)
	if r.Violation != "" {
		text += ": " + r.Violation
	}
	return text
}

// Check looks for an order of the operations on the units of the item, and of those of each buyer.
// stock is the units at the start; -1 = others buy and return units as well, and only what each buyer
// saw is checked. A violation is drawn into a file in dir.
func (h *History) Check(stock int, dir string) Result {
	h.mu.Lock()
	defer h.mu.Unlock()
	result := Result{Operations: len(h.all)}
	if h.dropped > 0 {
		result.Violation = fmt.Sprintf("%d more operations were not recorded", h.dropped)
		return result
	}
	units, buyers := h.split()
	deadline := time.Now().Add(searchTime)
	if stock >= 0 {
		if result.Violation = search(unitsModel(stock), units, deadline, "units", dir); result.Violation != "" {
			return result
		}
	}
	for buyer, own := range buyers {
		name := fmt.Sprintf("buyer-%d", buyer)
		if result.Violation = search(buyerModel(), own, deadline, name, dir); result.Violation != "" {
			return result
		}
	}
	result.OK = true
	return result
}

// search returns what is wrong with a part of a history; "" = nothing.
func search(model porcupine.Model, part []porcupine.Operation, deadline time.Time, name, dir string) string {
	result, info := porcupine.CheckOperationsVerbose(model, part, max(time.Millisecond, time.Until(deadline)))
	if result == porcupine.Ok {
		return ""
	}
	path := filepath.Join(dir, "history-"+name+".html")
	said := fmt.Sprintf("the operations of %s have no order (%s), see %s", name, result, path)
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		said += ": " + err.Error()
	}
	return said
}

// split returns the operations on the units of the item, and those of each buyer on the own task.
func (h *History) split() (units []porcupine.Operation, buyers map[int][]porcupine.Operation) {
	if len(h.all) == 0 {
		return nil, nil
	}
	start, end := h.all[0].Began, h.all[0].Over
	for _, o := range h.all {
		if o.Began.Before(start) {
			start = o.Began
		}
		if o.Over.After(end) {
			end = o.Over
		}
	}
	returned := map[string]bool{}
	for _, o := range h.all {
		if o.Kind == Ended || o.Kind == Released {
			returned[o.Task] = true
		}
	}
	buyers = map[int][]porcupine.Operation{}
	for _, o := range h.all {
		o.returns = returned[o.Task]
		began, over := o.Began, o.Over
		ofUnits := true
		switch o.Kind {
		case SoldOut:
			began = began.Add(-stale)
		case Unknown, Ended:
			over = end
		case SawOpen, SawOrder, SawFailed, SawNone:
			ofUnits = false
		case Took, Released:
		}
		op := porcupine.Operation{ClientId: o.Buyer, Input: o, Call: began.Sub(start).Nanoseconds(),
			Return: over.Sub(start).Nanoseconds()}
		if o.Kind == Took || o.Kind == Released || !ofUnits {
			buyers[o.Buyer] = append(buyers[o.Buyer], op)
		}
		if o.Kind == Released {
			op.Return = end.Sub(start).Nanoseconds()
		}
		if ofUnits {
			units = append(units, op)
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
			s, o := state.(left), input.(Operation)
			switch o.Kind {
			case Took:
				n := left{max(0, s.least-1), s.most - 1, s.returning}
				if o.returns {
					n.returning++
				}
				return s.most > 0, n
			case SoldOut:
				return s.least == 0, left{returning: s.returning}
			case Unknown:
				return true, left{max(0, s.least-1), s.most, s.returning}
			case Ended, Released:
				return s.returning > 0, left{s.least + 1, s.most + 1, s.returning - 1}
			case SawOpen, SawOrder, SawFailed, SawNone:
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
	seen Kind // SawOpen, SawOrder, SawFailed or Released; "" = the buyer has none
}

// buyerModel is a buyer with at most one task at a time, which ends once.
func buyerModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return task{} },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(task), input.(Operation)
			own := o.Task == s.id
			switch {
			case o.Kind == Took:
				return s.seen == "" || s.seen == SawFailed || s.seen == Released, task{o.Task, SawOpen}
			case o.Kind == SawNone:
				return s.seen == "" || s.seen == SawOpen || s.seen == SawFailed, s
			case s.seen == Released: // the task has an order that has ended
				return own && o.Kind == SawOrder, s
			case o.Kind == Released:
				return own && s.seen != SawFailed, task{s.id, Released}
			}
			return own && (s.seen == SawOpen || s.seen == o.Kind), task{s.id, o.Kind}
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
	o := input.(Operation)
	return fmt.Sprintf("%s %s", o.Kind, o.Task)
}
