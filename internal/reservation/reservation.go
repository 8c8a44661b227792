// Package reservation takes stock. It owns the gate in Redis: the hash of each
// item with its window, limit and stock, who holds units, and the scripts that
// change them. One Lua script makes all checks, takes the stock, records the
// holder and appends the order message, so that no crash can part them:
//
//	           reserve (window, path, already holding, limit, stock)
//	buyer ───────────────────────────────► RESERVED ──► message in the order stream
//	                                          │
//	             release (expired, cancelled, │ failed): once per task
//	                                          ▼
//	                                       stock again
//
// Redis is the gate, not the record: Postgres is (package order). A gate that is
// missing, or older than the sale's epoch, is closed; it is never made up here.
// The package does not know captchas, paths' issue, payment or GraphQL.
package reservation

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

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
	TooFewLeft          Code = 12 // some units are left, but fewer than wanted
	TooManyTries        Code = 13 // of this user in this sale; see Attempt.Tries
)

// Attempt is one try to take stock.
type Attempt struct {
	Task           uuid.UUID // made before; names the shard
	Sale           uuid.UUID
	Item           uuid.UUID
	User           uuid.UUID
	Quantity       int
	PathToken      string
	IdempotencyKey string // 16 to 64 of [A-Za-z0-9_-]
	Message        []byte // payload of the order message, whose id is the task's
	Tries          Tries
}

// Tries bounds how often one user may try in one sale, across all processes: it
// is counted in the script that takes the stock. The zero value bounds nothing.
type Tries struct {
	Burst int           // at once
	Every time.Duration // in which one more comes back; counted in whole milliseconds, at least one
}

func (t Tries) everyMs() int64 { return max(1, t.Every.Milliseconds()) }

// Outcome is the answer to an attempt.
type Outcome struct {
	Code      Code
	Task      uuid.UUID // the task taken in, or the one that was there before; Nil when there is none
	Remaining int       // units left in the item afterwards
	Revision  int64     // of the item's stock
	Epoch     int64     // of the gate
	Opens     time.Time // when the gate opens by its own data
	At        time.Time // Redis time of the decision
	// RetryAfter is how long to wait after TooManyTries, which tells nothing else
	// of the gate.
	RetryAfter time.Duration
}

// LimitReached refuses a buyer who holds, or wants, more than one person may.
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
	Left int // units left, fewer than wanted
}

// Reason returns SoldOut.
func (NoneLeft) Reason() fault.Reason { return fault.SoldOut }

// Path is nil: no input is at fault.
func (NoneLeft) Path() []string { return nil }

//go:embed lua/run.lua
var runLua string

// RunLua defines the Lua function run, which tells one life of the server from
// another, for scripts that trust a gate only in the life that it was built in.
var RunLua = runLua

//go:embed lua/state.lua
var stateLua string

//go:embed lua/reserve.lua
var reserveLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/begin.lua
var beginLua string

//go:embed lua/open.lua
var openLua string

//go:embed lua/holders.lua
var holdersLua string

// The scripts of the gate. redis.Script is immutable.
var (
	reserveScript = redis.NewScript(runLua + reserveLua)
	releaseScript = redis.NewScript(releaseLua)
	beginScript   = redis.NewScript(runLua + beginLua)
	openScript    = redis.NewScript(openLua)
	stateScript   = redis.NewScript(runLua + stateLua)
	holdersScript = redis.NewScript(holdersLua)
)

// recordTTL is how long the records of tasks and idempotency keys are kept, at least.
const recordTTL = 24 * time.Hour

// LoadScripts makes the scripts known to Redis, so that the first buyer does
// not pay for it. A cluster gets them on every master.
func LoadScripts(ctx context.Context, client redis.UniversalClient) error {
	for _, s := range []*redis.Script{
		reserveScript, releaseScript, beginScript, openScript, stateScript, holdersScript, adjustScript, gateScript, unloadScript,
		lineScript, redeemScript, retakeScript,
	} {
		if err := s.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load scripts: %w", err)
		}
	}
	return nil
}

// Shard returns the shard of the attempt's sale.
func (a *Attempt) Shard() int { return id.ShardOf(a.Sale) }
