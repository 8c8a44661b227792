//go:build race

package guard_test

// slowdown is how much longer everything takes under the race detector.
const slowdown = 20
