package redisconn_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func TestEveryCommandOfARefusedPipelineHasAnError(t *testing.T) {
	t.Parallel()
	for _, lockout := range testenv.Lockouts() {
		t.Run(lockout.Name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisServer(t)
			conn := open(t, testenv.LockableURL(t, server))
			restore := lockout.Do(t, server)
			for name, pipe := range map[string]redis.Pipeliner{
				"cmd": conn.Cmd.Pipeline(), "script": conn.Script.Pipeline(), "transaction": conn.Cmd.TxPipeline(),
			} {
				number, hash, now := pipe.Get(t.Context(), "number"), pipe.HMGet(t.Context(), "hash", "a"), pipe.Time(t.Context())
				redisconn.ExecEach(t.Context(), pipe)
				for what, err := range map[string]error{"GET": number.Err(), "HMGET": hash.Err(), "TIME": now.Err()} {
					if err == nil || !fault.IsTransient(err) {
						t.Errorf("%s: %s: error %v, want a transient one", name, what, err)
					}
				}
			}
			restore()
			pipe := conn.Cmd.Pipeline()
			now := pipe.Time(t.Context())
			redisconn.ExecEach(t.Context(), pipe)
			if err := now.Err(); err != nil {
				t.Errorf("after the refusal: %v", err)
			}
		})
	}
}

func TestACommandThatFailsAloneLeavesTheOthersTheirReplies(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	if err := conn.Cmd.Set(t.Context(), prefix+"text", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	pipe := conn.Cmd.Pipeline()
	wrong, text, absent := pipe.HMGet(t.Context(), prefix+"text", "a"), pipe.Get(t.Context(), prefix+"text"), pipe.Get(t.Context(), prefix+"absent")
	redisconn.ExecEach(t.Context(), pipe)
	if wrong.Err() == nil || text.Err() != nil || text.Val() != "x" || absent.Err() != redis.Nil { //nolint:errorlint // the bare value
		t.Errorf("wrong type: %v, text: %q %v, absent: %v", wrong.Err(), text.Val(), text.Err(), absent.Err())
	}
}
