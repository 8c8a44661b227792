package testenv_test

import (
	"testing"

	"seckill/internal/testenv"
)

// A test may end before the server's goroutine has run.
func TestAnUnusedMailServerEnds(t *testing.T) {
	t.Parallel()
	for range 100 {
		t.Run("", func(t *testing.T) { testenv.NewMailServer(t) })
	}
}
