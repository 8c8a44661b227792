// Package model is the gate of one sale as a state machine in plain Go, without Redis and
// Postgres. A Sale is what Redis has; its methods answer as the scripts of package reservation
// do. A System adds the record, the order stream and the steps of a rebuild. Both are plain
// values: a copy is a snapshot, and equal states are equal.
//
// The tests use it three times: random commands on a Sale and on a real Redis have the same
// replies and figures; all states of a small System are visited, each with its invariants; and
// a Trace of what buyers of a whole installation saw is accepted only if a Sale gives the same
// replies in some order.
//
// The model states what holds, not how: units per buyer and person are sums over reservations
// here, and counters in Redis. It has no clock: a path token is valid or expired, a window is
// open.
package model
