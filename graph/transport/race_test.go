//go:build race

package transport_test

// larger is how much more memory a goroutine takes under the race detector.
const larger = 4
