// Package refusal keeps why buyers were refused at the gate of a sale, so that each of
// them can see it afterwards: at which stage, with which code, how often, when, and what
// was left at that moment.
//
// A process counts in memory and writes once a second, in batches: a request that is
// refused pays for one entry of a map, and its buyer sees it at once in the same process.
// The counts are exact unless the memory is full,
// when refusals are dropped and counted by a metric, or a process is killed, which loses
// its last second. The figures of a sale, which count everything, belong to package
// salestats.
package refusal

import (
	"bytes"
	"cmp"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Refused is one refused call of a buyer.
type Refused struct {
	User id.User
	Sale id.Sale
	Item id.Item // zero = the call named none
	// Stage is the stage of the gate, see salestats.Stage.
	Stage string
	Code  fault.Reason
	Left  *int // units left of the item; nil = not known
	Ahead *int // buyers ahead in the waiting room; nil = no place
}

// Refusal is all that was refused to a buyer at one stage with one code.
type Refusal struct {
	Sale        id.Sale
	Item        id.Item // zero = the calls named none
	Stage       string
	Code        fault.Reason
	Times       int
	First, Last time.Time
	Left, Ahead *int // the last time
}

// buyer is a user in a sale.
type buyer struct {
	user id.User
	sale id.Sale
}

// same reports whether two refusals of a buyer share a row.
func (r *Refusal) same(o *Refusal) bool {
	return r.Item == o.Item && r.Stage == o.Stage && r.Code == o.Code
}

// row is what is written for a user.
type row struct {
	user id.User
	*Refusal
}

func (r row) compare(o row) int {
	return cmp.Or(
		bytes.Compare(r.user[:], o.user[:]), bytes.Compare(r.Sale[:], o.Sale[:]), bytes.Compare(r.Item[:], o.Item[:]),
		cmp.Compare(r.Stage, o.Stage), cmp.Compare(r.Code, o.Code),
	)
}

// add merges what was refused later, or written in vain before.
func (r *Refusal) add(o *Refusal) {
	r.Times += o.Times
	if o.First.Before(r.First) {
		r.First = o.First
	}
	if !o.Last.Before(r.Last) {
		r.Last, r.Left, r.Ahead = o.Last, o.Left, o.Ahead
	}
}
