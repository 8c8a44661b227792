// Package simulate runs the whole product in one process on virtual time: API processes,
// workers and schedulers, buyers, operators and a payment service, on an in-process Redis
// and database over connections in memory. A seed decides the story: what the buyers do,
// which faults come, and when. After the faults, all invariants must hold.
package simulate
