package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"seckill/internal/periodic"
)

// stopTimeout bounds what is left to do after the listeners have closed.
const stopTimeout = 15 * time.Second

// purgeEvery is how often sessions that ended long ago are deleted.
const purgeEvery = time.Hour

// admitEvery is how often waiting rooms are tended: how long a free permit waits
// for the first in line, at most. A step over a full house takes longer.
const (
	admitEvery   = 200 * time.Millisecond
	admitTimeout = 10 * time.Second
)

// group runs things until they are told to stop, and remembers what failed.
type group struct {
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // the life of the group
	wg     sync.WaitGroup
	fail   func(error)
}

func newGroup(fail func(error)) *group {
	ctx, cancel := context.WithCancel(context.Background())
	return &group{ctx: ctx, cancel: cancel, fail: fail}
}

func (g *group) start(name string, run func(context.Context) error) {
	g.wg.Go(func() {
		err := run(g.ctx)
		if g.ctx.Err() == nil && err == nil {
			err = errors.New("stopped by itself")
		}
		if err != nil && g.ctx.Err() == nil {
			g.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

func (g *group) stop() {
	g.cancel()
	g.wg.Wait()
}

// Run runs the process until ctx ends or a part of it fails, then stops it in
// order: the edge first, so that no new work comes in, then what takes stock,
// then what writes orders, the services last. It returns what failed.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taking, writing := newGroup(cancel), newGroup(cancel)

	writing.start("status bus", a.bus.Run)
	writing.start("revocations", a.revocations.Run)
	writing.start("lost tasks", a.lostTasks().Run)
	a.office.start(writing)
	if a.roles.Worker {
		a.worker.start(writing)
		a.cashier.start(writing)
	}
	if a.roles.Scheduler {
		writing.start("preload", periodic.Loop{Name: "preload", Every: a.cfg.PreloadEvery, Step: a.preloader.Step, Log: a.log}.Run)
	}
	if a.roles.Scheduler {
		writing.start("reconcile", a.reconciler().Run)
		writing.start("interventions", a.office.desk.Loop().Run)
		writing.start("purge security log", periodic.Loop{Name: "purge security log", Every: purgeEvery, Step: a.security.Purge, Log: a.log}.Run)
		writing.start("purge sessions", periodic.Loop{Name: "purge sessions", Every: purgeEvery, Step: a.people.Purge, Log: a.log}.Run)
	}
	if a.roles.Scheduler {
		taking.start("waiting rooms", periodic.Loop{Name: "waiting rooms", Every: admitEvery, Timeout: admitTimeout, Step: a.queue.Step, Log: a.log}.Run)
	}
	if a.roles.Scheduler {
		taking.start("waitlist", a.waitlist.Loop().Run)
	}
	taking.start("stock cache", a.stock.Run)
	if a.roles.API {
		if a.documents != nil {
			taking.start("trusted documents", a.documents.Run)
		}
		taking.start("outlooks", a.outlooks.Loop().Run)
		taking.start("captcha pictures", a.captchas.Run)
		taking.start("sale watch", a.store.Run)
	}
	err := a.serve(ctx, cancel)

	taking.stop()
	writing.stop()
	if a.worker != nil {
		stopping, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		a.worker.close(stopping, a.log)
		done()
	}
	err = errors.Join(err, a.svc.Close())
	a.log.InfoContext(ctx, "ended")
	return err
}

// serve answers requests until ctx ends.
func (a *App) serve(ctx context.Context, cancel context.CancelCauseFunc) error {
	told := make(chan struct{})
	context.AfterFunc(ctx, func() {
		a.log.InfoContext(ctx, "draining")
		close(told)
	})
	var err error
	if a.edge != nil {
		where := []slog.Attr{slog.Any("admin", a.AdminAddr())}
		if public := a.PublicAddr(); public != nil {
			where = append([]slog.Attr{slog.Any("public", public)}, where...)
		}
		a.log.LogAttrs(ctx, slog.LevelInfo, "listening", where...)
		if err = a.edge.server.Run(ctx); err != nil {
			cancel(err)
		}
	}
	<-told // and ctx is done
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// PublicAddr is where the public listener listens; nil when there is none.
func (a *App) PublicAddr() net.Addr {
	if a.edge == nil {
		return nil
	}
	return a.edge.server.PublicAddr()
}

// AdminAddr is where the admin listener listens; nil when there is none.
func (a *App) AdminAddr() net.Addr {
	if a.edge == nil {
		return nil
	}
	return a.edge.server.AdminAddr()
}
