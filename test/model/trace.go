package model

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// Op is a kind of call that buyers of a whole installation make.
type Op string

// Calls. Look is one that shows whether units are left, and takes nothing.
const (
	Ask    Op = "ask for a token"
	Place  Op = "place"
	Cancel Op = "cancel"
	Look   Op = "look"
)

// Call is a call of a buyer with its reply, as the buyer saw them. Calls that were repeated because no
// reply came are one.
type Call struct {
	Op       Op
	Buyer    int8
	Task     Task  // that the reply names, or that is cancelled
	Key      int8  // idempotency key of Place
	Token    int16 // number of the path token: given by Ask, used by Place
	Code     Code  // of the reply; 0 = none came
	Repeated bool  // a former call may have taken the unit
	// A cancelled unit returns at any time after Began. A reply of SoldOut may be as old as Stale.
	Began, Over time.Time
}

// String returns the call and its reply.
func (c Call) String() string {
	switch {
	case c.Op == Cancel:
		return fmt.Sprintf("cancel task %d", c.Task)
	case c.Op == Ask && c.Code == Accepted:
		return fmt.Sprintf("%s: token %d", c.Op, c.Token)
	case c.Op == Place && c.Task != 0:
		return fmt.Sprintf("%s with token %d: task %d", c.Op, c.Token, c.Task)
	}
	reply, known := map[Code]string{
		0: "no reply", SoldOut: "sold out", AlreadyHolding: "already ordered", PathInvalid: "token is not valid",
	}[c.Code]
	if !known {
		reply = fmt.Sprint("code ", c.Code)
	}
	return fmt.Sprintf("%s: %s", c.Op, reply)
}

// Stale is how old "sold out" may be: processes refuse from memory.
const Stale = time.Second

// Trace is what the buyers of an item did, in any order.
type Trace []Call

// explainTime bounds the search for an order of a trace.
const explainTime = 20 * time.Second

// Explain looks for an order of the calls, each between its start and its end, in which a Sale with a
// limit of one unit gives all replies. It returns what is wrong, "" = nothing, and draws it into a file.
func (t Trace) Explain(stock int8, path string) string {
	result, info := porcupine.CheckOperationsVerbose(saleModel(stock), t.operations(), explainTime)
	if result == porcupine.Ok {
		return ""
	}
	said := fmt.Sprintf("no order of %d calls has these replies (%s), see %s", len(t), result, path)
	if err := porcupine.VisualizePath(saleModel(stock), info, path); err != nil {
		said += ": " + err.Error()
	}
	return said
}

func (t Trace) operations() (all []porcupine.Operation) {
	var end time.Time
	for _, c := range t {
		if c.Over.After(end) {
			end = c.Over
		}
	}
	for _, c := range t {
		if c.Code == SoldOut {
			c.Began = c.Began.Add(-Stale)
		}
		if c.Code == 0 || c.Op == Cancel {
			c.Over = end
		}
		all = append(all, porcupine.Operation{ClientId: int(c.Buyer), Input: c, Call: c.Began.UnixNano(),
			Return: c.Over.UnixNano()})
	}
	return all
}

// saleModel is a Sale of one item as the sequential object of a trace.
func saleModel(stock int8) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			var s Sale
			s.Begin(0, 1)
			s.Open(0, Contents{State: Open, Epoch: 1, Limit: 1, Total: stock, Stock: stock})
			return s
		},
		Step: func(state, input, _ any) (bool, any) {
			s, c := state.(Sale), input.(Call)
			right := s.gives(c)
			return right, s
		},
		DescribeOperation: func(input, _ any) string { return input.(Call).String() },
		DescribeState: func(state any) string {
			g := state.(Sale).Gates[0]
			return fmt.Sprintf("stock %d, reserved %d, tasks %d", g.Stock, g.Reserved, [Buyers]Task{
				g.Held[0].Task, g.Held[1].Task, g.Held[2].Task, g.Held[3].Task,
			})
		},
	}
}

// gives makes a call, and reports whether the reply is the recorded one.
func (s *Sale) gives(c Call) bool {
	switch c.Op {
	case Ask:
		r, _ := s.Issue(c.Buyer, 0, Persons{}, c.Token, false)
		return c.Code == 0 || r.Code == c.Code
	case Place:
		task := c.Task
		if task == 0 || c.Code == Replayed && !c.Repeated {
			task = -1 // of a new attempt, which the reply does not name
		}
		r := s.Reserve(Attempt{Buyer: c.Buyer, Units: 1, Task: task, Key: c.Key, Permit: Permit{Epoch: 1, Serial: c.Token}})
		code := c.Code
		if c.Repeated && code == Replayed {
			code = Accepted
		}
		return c.Code == 0 || r.Code == code && (c.Task == 0 || r.Task == c.Task)
	case Cancel:
		return s.Release(Release{Buyer: c.Buyer, Task: c.Task}) == Released
	case Look:
		return c.Code != SoldOut || s.Gates[0].Stock <= 0
	}
	return false
}
