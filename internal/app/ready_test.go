package app

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// A process that does not know the ended sessions would accept their tokens.
func TestAProcessIsNotReadyBeforeItKnowsWhichSessionsWereEnded(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	blocking := conn.NewBlocking()
	b := base{svc: &services{db: testdb.Postgres(t), redis: conn}}
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: conn.Cmd, Tail: blocking, Prefix: prefix, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	})
	ready := func() (err error) {
		for _, c := range checks(b, gates{}, revocations) {
			if c.Name == "sessions" {
				return c.Run(t.Context())
			}
		}
		return nil
	}
	if ready() == nil {
		t.Error("ready before the view of ended sessions was begun")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = revocations.Run(ctx) })
	<-revocations.Ready()
	if err := ready(); err != nil {
		t.Errorf("not ready although the view has caught up: %v", err)
	}
	cancel()
	running.Wait()
	_ = blocking.Close()
}
