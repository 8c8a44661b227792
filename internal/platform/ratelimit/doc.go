// Package ratelimit implements rate limits: a number of attempts in a sliding window.
//
// It owns the windows, their state in Redis and in the process, and the identity of the
// counted subjects. It does not own the limits: each operation passes its Policy. A rate
// limit bounds attempts over time; it is not the purchase limit of a sale. Budget is a
// quota, of the points that queries cost.
//
// Limiter counts across all processes, in Redis, with a copy in the process, so that a
// flood is refused without a network call; for what a crowd calls, Redis counts later. Local
// counts in this process only and never does I/O: the hot path uses it.
package ratelimit
