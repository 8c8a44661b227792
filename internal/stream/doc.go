// Package stream carries messages over Redis Streams with watermill: it is the
// part of the product that answers for "no order is lost".
//
// What it owns: the wire format of an entry, the batch subscriber (reading,
// acknowledging in groups, taking over what a dead worker left, coming back
// after a lost consumer group), the router with its middlewares and its
// supervision, the dead letters, the trimming of what every group is done with,
// the publisher, and the broadcast that any process may tail. It is the only
// package that knows watermill beside the wiring; Message is its name for the
// others.
//
// What it does not own: the names of streams, the meaning of payloads, the
// reserve script that appends orders (it only supplies the fields, see Entry).
//
// # Promise
//
// At least once. An entry stays pending in its group until a handler returned
// nil for it or it lies in the dead letters; acknowledgements lost at any point
// lead to another delivery, never to a loss. Handlers are idempotent by message
// id.
//
// # Life of an entry
//
//	appended ──read──► in flight ──handler ok──► acknowledged ──► trimmed
//	                      │  ▲
//	        handler fails │  │ copy, after NackDelay (doubling up to NackDelayMax)
//	                      ▼  │
//	                    waiting ──permanent error, or too many failures──► dead letter ──► acknowledged
//	                                                                           │
//	                                              replay (back, once) or drop ◄┘
//
// # Who may take what
//
// A pending entry belongs to the consumer that read it. Its process keeps it
// fresh (XCLAIM JUSTID) as long as a handler works on it or a retry is due, so
// that the idle time of an entry says "its owner is dead or stuck". Entries idle
// for ClaimIdle are taken over by any consumer of the group, looked for every
// ClaimEvery: with 15 s and 1 s, a killed worker's messages move within 20 s. A
// worker that stops in order hands back what it did not finish at once, and one
// that starts again under its name takes its own entries first, without waiting.
//
// # When a message is given up
//
// A message goes to the dead letters when its handler says so (Permanent), when
// the entry cannot be decoded, when the handler failed MaxFailures times with
// errors that are neither Permanent nor Retryable, or when it was delivered
// MaxDeliveries times without an answer (it kills its workers). Errors that are
// Retryable (a service is away, a deadline passed, a lock was not free) never count:
// an outage of Postgres, however long, sets no good order aside.
package stream
