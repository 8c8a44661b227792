// Package refusal keeps why buyers were refused at the gate of a sale, so that each of
// them can see it afterwards: at which stage, with which code, how often, when, and what
// was left at that moment.
//
// A process counts in memory and writes once a second, in small batches: a request that
// is refused pays for one entry of a map. The counts are exact unless the memory is full,
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

// key identifies what shares a row.
type key struct {
	user  id.User
	sale  id.Sale
	item  id.Item
	stage string
	code  fault.Reason
}

func (k key) compare(o key) int {
	return cmp.Or(
		bytes.Compare(k.user[:], o.user[:]), bytes.Compare(k.sale[:], o.sale[:]), bytes.Compare(k.item[:], o.item[:]),
		cmp.Compare(k.stage, o.stage), cmp.Compare(k.code, o.code),
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
