package order

import (
	"errors"
	"fmt"
	"time"

	"seckill/internal/platform/id"
)

const (
	// minAlike is the smallest batch for which one SQLSTATE for all requests is blamed on
	// the server.
	minAlike = 3
	// alikeFor is how long requests that fail with the same SQLSTATE are retried without
	// being counted.
	alikeFor = 15 * time.Minute
)

// errAlike marks the error of requests that failed with the same SQLSTATE.
var errAlike = errors.New("all orders of a batch fail with the same SQLSTATE")

// retryAlike marks the errors of a batch as transient if all of its requests failed
// with the same SQLSTATE: a full disk, a trigger or a constraint that an operator has
// added. Older requests are not marked, so that each becomes a dead letter in the end.
func (w *Writer) retryAlike(requests []Request, faults map[id.Task]error) {
	if len(requests) < minAlike || len(faults) < len(requests) {
		return
	}
	state := ""
	for _, err := range faults {
		s, ok := errors.AsType[interface {
			error
			SQLState() string
		}](err)
		if !ok || state != "" && s.SQLState() != state {
			return
		}
		state = s.SQLState()
	}
	after := w.clock.Now().Add(-alikeFor)
	for _, r := range requests {
		if r.submittedAt().After(after) {
			faults[r.Task] = fmt.Errorf("%w: %w", errAlike, faults[r.Task])
		}
	}
}
