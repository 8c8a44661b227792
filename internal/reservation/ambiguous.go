package reservation

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ambiguous reports whether a command that failed with err may have been carried
// out. An error that Redis itself answered, a connection that was never made and
// a pool that had none free are certain: nothing happened.
func ambiguous(err error) bool {
	var answered redis.Error
	if errors.As(err, &answered) {
		return strings.HasPrefix(answered.Error(), "UNKILLABLE") // a write script ran too long and goes on
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
