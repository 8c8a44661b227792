// Package refusal keeps why buyers were refused at the gate of a sale, so that each of
// them can see it afterwards: at which stage, with which code, how often, when, and what
// was left at that moment.
//
// A process counts in memory and writes once a second, in batches: a request that is
// refused pays for one entry of a map, and its buyer sees it at once in the same process.
// Each process has rows of its own in Postgres, which a list merges.
// The counts are exact unless the memory is full,
// when refusals are dropped and counted by a metric, or a process is killed, which loses
// its last second. The figures of a sale, which count everything, belong to package
// salestats.
package refusal

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"

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

// row is a row of Postgres. Only the process that made it writes it.
type row struct {
	id   uuid.UUID
	user id.User
	Refusal
	written int  // Times in Postgres
	known   bool // Postgres may have the row
}

// waits reports whether Postgres does not have all that was refused.
func (r *row) waits() bool { return r.Times > r.written }

// newID returns the id of a row: a UUIDv7 with the time of its first refusal, by which old
// rows are found.
func newID(first time.Time) uuid.UUID {
	u := id.New[uuid.UUID]()
	lowest := lowestID(first)
	copy(u[:6], lowest[:6])
	return u
}

// lowestID is not above any id of a row whose first refusal is not before t.
func lowestID(t time.Time) (u uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(t.UnixMilli()))
	copy(u[:6], ms[2:])
	return u
}

// same reports whether two rows of a buyer, which two processes wrote, are one refusal.
func (r *Refusal) same(o *Refusal) bool {
	return r.Item == o.Item && r.Stage == o.Stage && r.Code == o.Code
}

// add merges the same refusal of another row.
func (r *Refusal) add(o *Refusal) {
	r.Times += o.Times
	if o.First.Before(r.First) {
		r.First = o.First
	}
	if !o.Last.Before(r.Last) {
		r.Last, r.Left, r.Ahead = o.Last, o.Left, o.Ahead
	}
}
