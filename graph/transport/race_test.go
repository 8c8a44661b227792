//go:build race

package transport_test

// larger is the memory factor of a goroutine under the race detector.
const larger = 4
