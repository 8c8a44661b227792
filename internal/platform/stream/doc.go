// Package stream carries messages over Redis Streams with watermill. It ensures that no
// accepted order is lost between the gate and the writer.
//
// It owns the wire format of an entry, the batch subscriber (reading, grouped
// acknowledgements, taking over pending entries of a dead worker, recovery from a lost
// consumer group), the router with its middlewares and supervision, the dead letters,
// the trimming of entries that every group has finished, the publisher, and the
// broadcast that any process may read. Outside tests and benchmarks, it is the only
// package that imports watermill; other packages use Message.
//
// It does not own the names of streams, the meaning of payloads, or the reserve script
// that appends orders (it only supplies the fields, see Entry).
//
// # Guarantee
//
// Delivery is at least once. An entry stays pending in its group until a handler
// returned nil for it or it is a dead letter; a lost acknowledgement leads to a
// redelivery, never to a loss. Handlers are idempotent by what a message contains: its
// id changes when it is split.
//
// # Life of an entry
//
//	appended ──read──► in flight ──handler ok──► acknowledged ──► trimmed
//	                      │  ▲
//	        handler fails │  │ copy, after NackDelay (doubling up to NackDelayMax)
//	                      ▼  │
//	                    waiting ──permanent error, or too many failures──► dead letter ──► acknowledged
//	                                                                           │
//	                                                    replay (once) or drop ◄┘
//
// # Ownership of pending entries
//
// A pending entry belongs to the consumer that read it. Its process refreshes it
// (XCLAIM JUSTID) while a handler works on it or a retry is due, so that a long idle
// time means that the owner is dead or stuck. Every ClaimEvery, each consumer of the
// group takes over entries that are idle for ClaimIdle: with 3 s and 15 s, the messages
// of a killed worker move within 20 s. A worker that stops normally hands back its
// unfinished entries at once, and a worker that restarts under the same name takes its
// own entries first, without waiting.
//
// # Messages of several orders
//
// The entry of a message says how many orders it has and how many the stream has had so
// far (lua/append.lua), so that statistics count orders. A message that would become a
// dead letter is first split into its orders, if its Handler can: they are appended to
// the stream once, and the message is acknowledged.
//
// # Dead letters
//
// A message becomes a dead letter when its handler returns a Permanent error, when the
// entry cannot be decoded, when the handler failed MaxFailures times with errors that
// are neither Permanent nor Retryable, or when it was delivered MaxDeliveries times
// without a reply (it kills its workers). Retryable errors (a service is unavailable, a
// deadline passed, a lock was not free) never count: an outage of Postgres of any
// length makes no valid order a dead letter.
// The letter is recorded before the entry is acknowledged; while the record refuses it, the
// entry stays pending and is tried again like a failed one.
package stream
