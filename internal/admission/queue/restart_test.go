package queue_test

import (
	"testing"

	"seckill/internal/id"
	"seckill/internal/sale"
	"seckill/internal/testenv"
)

func TestNoTicketIsGivenAfterARedisRestartUntilTheGateIsRebuilt(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn(), "t:")
	server.Kill()
	server.Restart()
	ticket, refusal, err := f.queue.Enter(t.Context(), f.input(id.New()))
	if r, ok := refusal.(sale.NotOpen); !ok || r.Phase != sale.PhasePaused || err != nil || ticket != nil {
		t.Errorf("enter after a restart of Redis: %+v, %#v, %v", ticket, refusal, err)
	}
	f.build(8)
	f.enter(id.New())
}
