// Package priority marks the work that must not wait behind buyers.
//
// It owns the mark. Postgres and Redis each keep a few connections for work that has it.
package priority

import "context"

// ReserveConns is how many connections a process opens to a store beyond its pools, for
// urgent work while those are in use: an act of an operator needs one, and some two.
const ReserveConns = 2

type urgentKey struct{}

// Urgent returns a context whose commands do not queue for a connection behind others:
// while all of a pool are in use, they take one of the reserve. It is for requests of staff,
// who pause a sale when buyers use everything, and for reads that all requests of a process
// share.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent reports whether a context is one of Urgent.
func IsUrgent(ctx context.Context) bool {
	urgent, _ := ctx.Value(urgentKey{}).(bool)
	return urgent
}
