package reservation

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// Keys names every Redis key of the product. All keys of a sale carry the hash
// tag of its shard, so that one script touches one cluster slot. The prefix
// keeps several installations, or several tests, apart on one Redis.
type Keys struct {
	Prefix string // for example "sk:"
}

func (k Keys) shard(shard int, rest string) string {
	tens := "0"
	if shard >= 10 {
		tens = ""
	}
	return k.Prefix + "{s" + tens + strconv.Itoa(shard) + "}:" + rest // six of them per order: no fmt
}

// Item is the hash of an item's gate: sale, gate, epoch, opens and closes (Unix
// milliseconds), limit, total, stock, reserved, rev, srev (revision of the sale
// that turned the gate), acts (adjustments that stock has in it). No TTL.
func (k Keys) Item(shard int, item uuid.UUID) string {
	return k.shard(shard, "item:"+item.String())
}

// Holders is the hash of who holds units of an item: user → record. No TTL.
func (k Keys) Holders(shard int, item uuid.UUID) string {
	return k.shard(shard, "holders:"+item.String())
}

// Path is the string "epoch|token" of a user's unused path to an item; lapses by TTL.
func (k Keys) Path(shard int, item, user uuid.UUID) string {
	return k.shard(shard, "path:"+item.String()+":"+user.String())
}

// Permits is the sorted set of unused paths of an item: user → expiry (Unix milliseconds).
func (k Keys) Permits(shard int, item uuid.UUID) string {
	return k.shard(shard, "permits:"+item.String())
}

// Queue is the sorted set of who waits for an item: ticket → score. What belongs to
// a waiting room lapses two days after somebody last entered it.
func (k Keys) Queue(shard int, item uuid.UUID) string {
	return k.shard(shard, "queue:"+item.String())
}

// QueuePlaces is the hash of places in an item's waiting room: user → ticket.
func (k Keys) QueuePlaces(shard int, item uuid.UUID) string {
	return k.shard(shard, "places:"+item.String())
}

// QueueBeats is the sorted set of when each one who waits was last heard of: ticket → Unix ms.
func (k Keys) QueueBeats(shard int, item uuid.UUID) string {
	return k.shard(shard, "beats:"+item.String())
}

// QueueRoom is the hash of a waiting room's figures: how many came, how many were let in.
func (k Keys) QueueRoom(shard int, item uuid.UUID) string {
	return k.shard(shard, "room:"+item.String())
}

// QueueRooms is the set of a shard's waiting rooms with people in them: "sale|item".
func (k Keys) QueueRooms(shard int) string { return k.shard(shard, "rooms") }

// Ticket is the hash of one place: sale, item, user, status and what it led to.
func (k Keys) Ticket(shard int, ticket uuid.UUID) string {
	return k.TicketPrefix(shard) + ticket.String()
}

// Stays is the set of a session's tickets in a shard: who signs out gives them up.
func (k Keys) Stays(shard int, session uuid.UUID) string {
	return k.shard(shard, "stays:"+session.String())
}

// TicketPrefix is what stands before the id in Ticket.
func (k Keys) TicketPrefix(shard int) string { return k.shard(shard, "ticket:") }

// Lapses counts the holds of a user in a sale that nobody paid for in time; the
// count lapses LapseWait after the last.
func (k Keys) Lapses(shard int, sale, user uuid.UUID) string {
	return k.shard(shard, "lapses:"+sale.String()+":"+user.String())
}

// Captcha is the hash of a user's current SECKILL challenge in a sale; lapses by TTL.
func (k Keys) Captcha(shard int, sale, user uuid.UUID) string {
	return k.shard(shard, "captcha:"+sale.String()+":"+user.String())
}

// Challenge is the hash of one challenge that is for no sale; lapses by TTL.
func (k Keys) Challenge(shard int, challenge uuid.UUID) string {
	return k.shard(shard, "challenge:"+challenge.String())
}

// Heat is when the last point of somebody who asks for captchas has gone, Unix
// milliseconds; lapses then. The sale is Nil for captchas of accounts.
func (k Keys) Heat(shard int, sale uuid.UUID, who string) string {
	return k.shard(shard, "heat:"+sale.String()+":"+who)
}

// Idems is the hash of the idempotency keys that took units of a sale: user:key →
// "task|item|quantity". Lapses 24 h after the last.
func (k Keys) Idems(shard int, sale uuid.UUID) string {
	return k.shard(shard, "idems:"+sale.String())
}

// Tries is the bucket of a user's tries to take stock in a sale: the theoretical
// arrival time of package ratelimit, in Unix milliseconds; lapses when full.
func (k Keys) Tries(shard int, sale, user uuid.UUID) string {
	return k.shard(shard, "tries:"+sale.String()+":"+user.String())
}

// Tasks is the hash of what is known of the order tasks whose ids were made in
// the same quarter of a second: "task:<id>" → JSON of a task, "order:<id>" → JSON
// of its order (package order). Many in one hash are written at once and take half
// the room of as many keys. Lapses 24 h after the last was written.
func (k Keys) Tasks(shard int, task uuid.UUID) string {
	return k.shard(shard, "tasks:"+hex.EncodeToString(task[:momentBytes]))
}

// momentBytes is how many bytes of a UUIDv7 tell when it was made to 256 ms.
const momentBytes = 5

// Orders is the order stream of a shard. No TTL, no MAXLEN.
func (k Keys) Orders(shard int) string { return k.shard(shard, "orders") }

// Stats is the hash of a sale's counters: see package salestats. Lapses a week
// after the last count.
func (k Keys) Stats(shard int, sale uuid.UUID) string {
	return k.shard(shard, "stats:"+sale.String())
}

// Series is the hash of a sale's figures by second, for one stretch of time.
// Lapses after two days.
func (k Keys) Series(shard int, sale uuid.UUID, stretch int64) string {
	return k.shard(shard, fmt.Sprintf("series:%s:%d", sale, stretch))
}

// Feed is the stream of what happened in a sale, for operators. Trimmed by
// length; lapses a week after the last line.
func (k Keys) Feed(shard int, sale uuid.UUID) string {
	return k.shard(shard, "feed:"+sale.String())
}

// DeadLetters is the stream of messages that were set aside.
func (k Keys) DeadLetters() string { return k.Prefix + "{dead}:orders" }

// Status is the fan-out stream of status messages.
func (k Keys) Status() string { return k.Prefix + "{bus}:status" }
