package orderintake_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// afterReading runs a function once, after the first read of a stream.
type afterReading struct {
	redis.Hook
	stream string
	do     func()
}

func (h *afterReading) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterReading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *afterReading) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); cmd.Name() == "xrange" && args[1] == h.stream && h.do != nil {
			do := h.do
			h.do = nil
			do()
		}
		return err
	}
}

// A gate that is rebuilt without these units would sell them twice.
func TestAMessageThatIsReplayedWhileMessagesAreReadIsSeen(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	in := r.decide("now")
	r.conn.Cmd.AddHook(&afterReading{stream: r.key, do: func() {
		if _, err := r.dead.Replay(t.Context(), in); err != nil {
			t.Error(err)
		}
	}})
	requests, err := r.backlog.Requests(t.Context(), r.shard)
	if err != nil || len(requests) == 0 || requests[0].Task != task {
		t.Errorf("requests: %+v, %v", requests, err)
	}
}
