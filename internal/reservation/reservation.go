// Package reservation takes stock. It owns the gates in Redis: for each item its
// window, limit and stock, the reservations on its units, and the scripts that change
// them. One Lua script makes all checks, takes the stock, records the reservation and
// appends the order message, so that no crash can separate them:
//
//	       reserve (window, path token, existing reservation, limit, stock)
//	buyer ───────────────────────────────► RESERVED ──► message in the order stream
//	                                          │
//	             release (expired, cancelled, │ failed): once per task
//	                                          ▼
//	                                      available again
//
// Redis is the gate, not the record: Postgres is (package order). A gate that is
// missing, being built, of an older epoch, or loaded before the last Redis restart or
// failover is closed; only package preload builds gates. The package does not know
// captchas, how paths are issued, payment or GraphQL.
package reservation

import (
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/id"
)

// Code is the outcome of an attempt to take stock. The numbers are those of
// lua/reserve.lua.
type Code int

// Outcomes of an attempt.
const (
	Accepted            Code = 1
	Replayed            Code = 2 // this idempotency key took the stock before, with the same input
	IdempotencyMismatch Code = 3 // this idempotency key was used with other input
	NotLoaded           Code = 4 // no gate in Redis: closed until it is built
	Paused              Code = 5
	NotStarted          Code = 6
	Ended               Code = 7
	PathInvalid         Code = 8
	AlreadyHolding      Code = 9
	OverLimit           Code = 10
	SoldOut             Code = 11
	TooFewLeft          Code = 12 // some units are left, but fewer than requested
	TooManyTries        Code = 13 // of this user in this sale; see Attempt.Tries
)

// Attempt is one call to take stock.
type Attempt struct {
	Task           uuid.UUID // generated before; carries the shard
	Sale           uuid.UUID
	Item           uuid.UUID
	User           uuid.UUID
	Quantity       int
	PathToken      string
	IdempotencyKey string // 16 to 64 of [A-Za-z0-9_-]
	Message        []byte // payload of the order message, whose id is the task's
	Tries          Tries
}

// Shard returns the shard of the attempt's sale.
func (a *Attempt) Shard() int { return id.ShardOf(a.Sale) }

// Tries limits how often one user may try in one sale, over all processes: the script
// that takes the stock counts them. The zero value is no limit.
type Tries struct {
	Burst int           // at once
	Every time.Duration // in which one more is allowed; in whole milliseconds, at least one
}

func (t Tries) everyMs() int64 { return max(1, t.Every.Milliseconds()) }

// Outcome is the result of an attempt.
type Outcome struct {
	Code      Code
	Task      uuid.UUID // the task that was accepted, now or before; Nil when there is none
	Remaining int       // units left in the item afterwards
	Revision  int64     // of the item's stock
	Epoch     int64     // of the gate
	Opens     time.Time // of the gate
	At        time.Time // Redis time of the decision
	// RetryAfter is how long to wait after TooManyTries. That outcome has no other
	// field of the gate.
	RetryAfter time.Duration
}

// LimitReached refuses a buyer who has, or requests, more than the purchase limit.
type LimitReached struct {
	Limit int
	Task  uuid.UUID // the task that used the limit up; Nil when there is none
	At    []string
}

// Reason returns PurchaseLimitReached.
func (LimitReached) Reason() fault.Reason { return fault.PurchaseLimitReached }

// Path returns the path of the input at fault.
func (l LimitReached) Path() []string { return l.At }

// NoneLeft refuses because nothing, or not enough, is left.
type NoneLeft struct {
	Item uuid.UUID
	Left int // units left, fewer than requested
}

// Reason returns SoldOut.
func (NoneLeft) Reason() fault.Reason { return fault.SoldOut }

// Path is nil: no input is at fault.
func (NoneLeft) Path() []string { return nil }

// recordTTL is how long the records of tasks and idempotency keys are kept, at least.
const recordTTL = 24 * time.Hour
