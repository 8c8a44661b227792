package queue_test

import (
	"errors"
	"testing"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestNoTicketIsGivenAfterARedisRestartUntilTheGateIsRebuilt(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn(), "t:")
	server.Kill()
	server.Restart()
	ticket, err := f.queue.Enter(t.Context(), f.input(id.New[id.User]()))
	if r, ok := errors.AsType[sale.NotOpen](err); !ok || r.Phase != sale.PhasePaused || ticket != nil {
		t.Errorf("enter after a restart of Redis: %+v, %v", ticket, err)
	}
	f.build(8)
	f.enter(id.New[id.User]())
}
