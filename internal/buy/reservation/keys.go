package reservation

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

// Keys builds the Redis keys of sales and captchas, of the order streams and dead
// letters, and of the status stream. Packages account, auth, payment, ratelimit and sale
// build their own from the same prefix. All keys of a sale have the hash tag of its
// shard, so that one script uses one cluster slot. The prefix separates installations, or
// tests, that share one Redis.
//
// Keys keep the names that release 0.1 gave them, which may differ from the glossary.
type Keys struct {
	Prefix string // for example "sk:"
}

func (k Keys) shard(shard int, rest string) string {
	tens := "0"
	if shard >= 10 {
		tens = ""
	}
	return k.Prefix + "{s" + tens + strconv.Itoa(shard) + "}:" + rest // called six times per order: fmt is too slow
}

// Item is the hash of an item's gate: sale, gate (its state), epoch, opens and closes
// (Unix milliseconds), limit, salelimit (0 = none), total, stock, reserved, rev, srev (revision of the sale
// that set the state), taken (orders accepted so far), acts (adjustments included in the stock), run and replid (Redis
// run and replication id of the build), since (last step of the build, Unix milliseconds),
// line (until when released units are for the waitlist, Unix milliseconds), kept (the shares of access rules). No TTL.
func (k Keys) Item(shard int, item id.Item) string {
	return k.shard(shard, "item:"+item.String())
}

// ItemOf returns the item of a key that Item built; false for any other key.
func (k Keys) ItemOf(key string) (id.Item, bool) {
	i := strings.LastIndexByte(key, ':') + 1
	item, err := id.ParseUUID[id.Item](key[i:])
	if err != nil {
		return item, false
	}
	for shard := range id.Shards {
		if k.Item(shard, item) == key {
			return item, true
		}
	}
	return item, false
}

// AnyItem is a pattern that matches the keys of Item.
func (k Keys) AnyItem() string { return k.any("item") }

// AnyTasks is a pattern that matches the keys of Tasks.
func (k Keys) AnyTasks() string { return k.any("tasks") }

// any returns a pattern for the keys of a kind in all shards.
func (k Keys) any(kind string) string {
	return redisconn.Literal(k.Prefix) + "{s[01][0-9]}:" + kind + ":*"
}

// Reservations is the hash of an item's reservations: user → record. No TTL.
func (k Keys) Reservations(shard int, item id.Item) string {
	return k.shard(shard, "holders:"+item.String())
}

// Units is the hash of the units per buyer of a sale with a limit: user → sum of the
// quantities of the user's reservations of all items, person key → that of the reservations
// with the key (and the end of the item, in a sale without a limit), "f…" for deleted accounts
// alone, and epoch, of the gates that it
// counts. A script that changes a reservation changes it in the same step, if the gate has
// that epoch. No TTL.
func (k Keys) Units(shard int, sale id.Sale) string {
	return k.shard(shard, "units:"+sale.String())
}

// FormerReservations is the hash Reservations of the former epoch. It exists only while
// the gate is being built.
func (k Keys) FormerReservations(shard int, item id.Item) string {
	return k.shard(shard, "former:"+item.String())
}

// Path is a user's path token as release 0.1 writes it; tickets of the waiting room name
// it until the next minor release, because processes of 0.1 admit them.
func (k Keys) Path(shard int, item id.Item, user id.User) string {
	return k.shard(shard, "path:"+item.String()+":"+user.String())
}

// Permits is the sorted set of an item's unused path tokens: user → expiry (Unix
// milliseconds). The expiries of two tokens of one user differ. Permits of load tools have
// a negative expiry and are not counted. The key outlives the last token until that
// token's expiry has been counted.
func (k Keys) Permits(shard int, item id.Item) string {
	return k.shard(shard, "permits:"+item.String())
}

// Admissions is the sorted set of the path tokens that a waiting room gave out and that
// were not seen to end: user → expiry (Unix milliseconds), negative once the token has
// expired unused.
func (k Keys) Admissions(shard int, item id.Item) string {
	return k.shard(shard, "admissions:"+item.String())
}

// WaitingRoom is the sorted set of an item's waiting tickets: ticket → score. The keys
// of a waiting room expire two days after the last entry.
func (k Keys) WaitingRoom(shard int, item id.Item) string {
	return k.shard(shard, "queue:"+item.String())
}

// WaitingRoomTickets is the hash of the tickets in an item's waiting room: user → ticket.
func (k Keys) WaitingRoomTickets(shard int, item id.Item) string {
	return k.shard(shard, "places:"+item.String())
}

// WaitingRoomBeats is the sorted set of the last heartbeats: ticket → Unix milliseconds.
func (k Keys) WaitingRoomBeats(shard int, item id.Item) string {
	return k.shard(shard, "beats:"+item.String())
}

// WaitingRoomStats is the hash of a waiting room's figures: entries and admissions.
func (k Keys) WaitingRoomStats(shard int, item id.Item) string {
	return k.shard(shard, "room:"+item.String())
}

// WaitingRooms is the set of a shard's waiting rooms with buyers who wait, or with admitted
// buyers whose path tokens have not been seen to end: "sale|item".
func (k Keys) WaitingRooms(shard int) string { return k.shard(shard, "rooms") }

// Ticket is the hash of one ticket: sale, item, user, status and the path token it
// received.
func (k Keys) Ticket(shard int, ticket id.Ticket) string {
	return k.TicketPrefix(shard) + ticket.String()
}

// TicketPrefix is the part of Ticket before the id.
func (k Keys) TicketPrefix(shard int) string { return k.shard(shard, "ticket:") }

// SessionTickets is the set of a session's tickets in a shard; signing out removes
// them.
func (k Keys) SessionTickets(shard int, session id.Session) string {
	return k.shard(shard, "stays:"+session.String())
}

// Expiries counts the reservations of a user in a sale that expired unpaid, and the path
// tokens that expired unused. Expires a day after the last increment.
func (k Keys) Expiries(shard int, sale id.Sale, user id.User) string {
	return k.ExpiriesPrefix(shard, sale) + user.String()
}

// ExpiriesPrefix is the part of Expiries before the user, for scripts that count several. A
// person key in place of the user counts those of all accounts of a person; "persons" is the
// hash of the person keys of users with a path token or a ticket, and of the last unused path token
// of a key ("user|permits").
func (k Keys) ExpiriesPrefix(shard int, sale id.Sale) string {
	return k.shard(shard, "lapses:"+sale.String()+":")
}

// Captcha is the hash of a user's challenges in a sale in release 0.3; tickets of the waiting
// room name it until the next minor release, because processes of 0.3 admit them.
func (k Keys) Captcha(shard int, sale id.Sale, user id.User) string {
	return k.shard(shard, "captcha:"+sale.String()+":"+user.String())
}

// Answers is the hash of the answered captchas of a sale, and of the permits received for
// them, without its last part, the period (package captcha): user → record. The sale is Nil
// for captchas of accounts, whose fields are challenges. Expires two periods after the last
// answer.
func (k Keys) Answers(shard int, sale id.Sale) string {
	return k.shard(shard, "answers:"+sale.String())
}

// Challenge is the hash of what an outside check accepted for a challenge; expires by TTL.
func (k Keys) Challenge(shard int, challenge id.Challenge) string {
	return k.shard(shard, "challenge:"+challenge.String())
}

// Penalty is the time at which the last penalty point of a user or network expires
// (Unix milliseconds); the key expires then. The sale is Nil for captchas of accounts.
func (k Keys) Penalty(shard int, sale id.Sale, subject string) string {
	return k.shard(shard, "heat:"+sale.String()+":"+subject)
}

// IdempotencyKeys is the hash of the idempotency keys that took units of a sale and
// whose reservations have ended, and of all such keys of a sale with several items:
// user:key → "task|item|quantity". Expires 24 h after the last.
func (k Keys) IdempotencyKeys(shard int, sale id.Sale) string {
	return k.shard(shard, "idems:"+sale.String())
}

// Tries begins the names of the hashes of users' newest attempts in a sale: user → times in
// Unix milliseconds, see lua/tries.lua of package ratelimit. Each expires two windows of the
// limit after its last attempt.
func (k Keys) Tries(shard int, sale id.Sale) string {
	return k.shard(shard, "tries:"+sale.String())
}

// Tasks is the hash of the ended order tasks whose ids were generated in the same 256 ms:
// "task:<id>" → JSON of a failed task, "order:<id>" → JSON of a changed order, the 16
// bytes of an id → packed copy of a fresh order (package order).
// The record of a task that has not ended is its reservation; until release 0.1 it had
// one here, too. One
// hash takes one write per batch and half the memory of separate keys. Expires 24 h
// after the last write.
func (k Keys) Tasks(shard int, task id.Task) string {
	return k.shard(shard, "tasks:"+hex.EncodeToString(task[:momentBytes]))
}

// momentBytes is the length of the prefix of a UUIDv7 that holds its time to 256 ms.
const momentBytes = 5

// Orders is the order stream of a shard. No TTL, no MAXLEN.
func (k Keys) Orders(shard int) string { return k.shard(shard, "orders") }

// Stats is the hash of a sale's counters (package salestats). Expires a week after the
// last count.
func (k Keys) Stats(shard int, sale id.Sale) string {
	return k.shard(shard, "stats:"+sale.String())
}

// Series is the hash of a sale's figures by second, for one period. Expires after two
// days.
func (k Keys) Series(shard int, sale id.Sale, period int64) string {
	return k.shard(shard, fmt.Sprintf("series:%s:%d", sale, period))
}

// Feed is the stream of the events of a sale, for operators. Trimmed by length; expires
// a week after the last event.
func (k Keys) Feed(shard int, sale id.Sale) string {
	return k.shard(shard, "feed:"+sale.String())
}

// DeadLetters is the stream in which release 0.1 keeps dead letters.
func (k Keys) DeadLetters() string { return k.Prefix + "{dead}:orders" }

// Status is the fan-out stream of status messages.
func (k Keys) Status() string { return k.Prefix + "{bus}:status" }
