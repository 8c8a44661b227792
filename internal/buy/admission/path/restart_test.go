package path_test

import (
	"testing"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// Until the gate is rebuilt, a path token would carry an epoch that is about to end.
func TestNoCaptchaIsTradedForAPathAfterARedisRestart(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn(), "t:", 0)
	user := id.New[id.User]()
	in := f.input(user, f.challenge(user))
	server.Kill()
	server.Restart()
	if r := refused[sale.NotOpen](f, in); r.Phase != sale.PhasePaused {
		t.Errorf("phase %s after a restart of Redis", r.Phase)
	}
	if f.stored(user) != "" {
		t.Error("a path was written")
	}
	f.build(8)
	f.issue(in) // with the same answer: the refusal did not use it up
}
