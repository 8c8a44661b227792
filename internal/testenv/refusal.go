package testenv

import (
	"testing"

	"seckill/internal/platform/fault"
)

// Refusal returns the refusal in an error, nil for no error. Any other error fails the
// test.
func Refusal(t testing.TB, err error) fault.Refusal {
	t.Helper()
	refusal, ok := fault.AsRefusal(err)
	if err != nil && !ok {
		t.Error(err)
	}
	return refusal
}
