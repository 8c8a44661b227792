//go:build race

package guard_test

// slowdown is the time factor of the race detector.
const slowdown = 20
