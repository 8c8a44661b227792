package reservation

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ambiguous reports whether a command that failed with err may have been executed. An
// error reply of Redis, a failed dial and an exhausted pool are certain: nothing was
// executed.
func ambiguous(err error) bool {
	var answered redis.Error
	if errors.As(err, &answered) {
		return strings.HasPrefix(answered.Error(), "UNKILLABLE") // UNKILLABLE: the write script is still running
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	return !errors.Is(err, context.Canceled)
}
