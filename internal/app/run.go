// Package app builds a process from the domain packages, runs it and stops it in order.
// It contains no rules about sales, orders or money. build.go reads from top to bottom as
// the dependency graph: each stage takes the stages before it, so the compiler checks the
// order. The demo and the server differ only in the services they use.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/app/server"
	"seckill/internal/buy/order"
	"seckill/internal/identity/account"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/config"
	"seckill/internal/platform/periodic"
	"seckill/internal/staff/inbox"
	"seckill/internal/staff/operator"
)

// Roles select what a process does.
type Roles struct {
	API       bool // answers buyers and operators
	Worker    bool // turns messages into orders
	Scheduler bool // preloads sales and repairs their gates
}

func allRoles() Roles { return Roles{API: true, Worker: true, Scheduler: true} }

// rolesOf parses role names: api, worker, scheduler.
func rolesOf(names []string) (Roles, error) {
	var r Roles
	for _, name := range names {
		switch name {
		case "api":
			r.API = true
		case "worker":
			r.Worker = true
		case "scheduler":
			r.Scheduler = true
		default:
			return r, fmt.Errorf("--roles has %q: choose from api, worker, scheduler", name)
		}
	}
	if r == (Roles{}) {
		return r, errors.New("--roles is empty: choose from api, worker, scheduler")
	}
	return r, nil
}

// App is a process, created by build and run by Run.
type App struct {
	cfg   *config.Config
	log   *slog.Logger
	roles Roles
	svc   *services

	accepting []part         // stopped first: they take stock or answer clients
	storing   []part         // stopped second: they write what was taken
	writer    *order.Writer  // closed last
	server    *server.Server // nil when the process only runs a command
	tabs      *server.Tabs   // of the playground
	seeding   seeding
	operator  *operator.Service // for commands
	payments  *payment.Service  // for commands
	users     *account.Admin    // for commands
}

// PublicAddr returns the address of the public listener, nil without one.
func (a *App) PublicAddr() net.Addr {
	if a.server == nil {
		return nil
	}
	return a.server.PublicAddr()
}

// SharedRedis returns the Redis pools that requests share, without the reserve of staff.
func (a *App) SharedRedis() []redis.UniversalClient {
	return []redis.UniversalClient{a.svc.redis.Cmd, a.svc.redis.Script}
}

// AdminAddr returns the address of the admin listener, nil without one.
func (a *App) AdminAddr() net.Addr {
	if a.server == nil {
		return nil
	}
	return a.server.AdminAddr()
}

// stopTimeout bounds the shutdown after the listeners have closed.
const stopTimeout = 15 * time.Second

// clocksEvery is the interval at which the clocks of Redis and Postgres are read.
const clocksEvery = 5 * time.Second

// purgeEvery is the interval at which sessions that ended long ago are deleted.
const purgeEvery = time.Hour

// admitEvery is the interval at which waiting rooms admit buyers: the longest time a free
// permit waits for the first buyer. One iteration over full waiting rooms takes longer.
const (
	admitEvery   = 200 * time.Millisecond
	admitTimeout = 10 * time.Second
	// idleAdmit is the longest pause while there is no waiting room; it delays the first
	// admission of a new one.
	idleAdmit = time.Second
)

// group runs functions until stop is called, and keeps their errors.
type group struct {
	cancel context.CancelFunc
	ctx    context.Context // the life of the group
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

// part is a function that runs as long as the process.
type part struct {
	name string
	run  func(context.Context) error
}

type runningParts struct {
	admission admission
	accounts  accounts
	waiting   waiting
	payments  payments
	scheduler scheduler
	worker    worker
	shop      shop
	admin     admin
	webhooks  *webhook.Service
	mailing   mailing
	notices   *notice.Service
	inbox     *inbox.Inbox
	measure   periodic.Loop
}

// schedule lists the parts that the roles of this process run.
func (a *App) schedule(g gates, m messages, s stats, in runningParts) {
	accept := func(name string, run func(context.Context) error) {
		a.accepting = append(a.accepting, part{name: name, run: run})
	}
	store := func(name string, run func(context.Context) error) {
		a.storing = append(a.storing, part{name: name, run: run})
	}
	loop := func(name string, every time.Duration, step periodic.Step) periodic.Loop {
		return periodic.Loop{Name: name, Every: every, Step: step, Log: a.log}
	}
	store("status bus", m.bus.Run)
	store("revocations", in.accounts.revocations.Run)
	store("figures", s.counts.Run)
	store("live log", s.feed.Run)
	store("refused attempts", s.refused.Run)
	store("lost tasks", in.scheduler.lostTasks.Run)
	accept("stock cache", g.stock.Run)
	accept("clocks", loop("clocks", clocksEvery, func(ctx context.Context) (map[string]int, error) {
		return nil, g.clock.Measure(ctx)
	}).Run)
	if !a.svc.host.Shared {
		accept("memory", loop("memory", memoryEvery, new(memory).step).Run)
	}
	if a.roles.Worker {
		store("order router", in.worker.router.Run)
		store("payment router", in.payments.router.Run)
		for _, l := range slices.Concat(in.worker.loops, in.payments.loops) {
			store(l.Name, l.Run)
		}
		store("webhooks", in.webhooks.Run)
		store("log acceptances", in.scheduler.accepted.Run)
		if in.mailing.sender != nil {
			store("mail", in.mailing.sender.Loop().Run)
		}
		for _, l := range in.notices.Loops() {
			store(l.Name, l.Run)
		}
	}
	if a.roles.Worker || a.roles.Scheduler {
		store(in.measure.Name, in.measure.Run)
	}
	if a.roles.Scheduler {
		store("preload", in.scheduler.preloads.Run)
		if !a.svc.embedded { // a database inside the process cannot go back
			store(in.scheduler.record.Name, in.scheduler.record.Run)
		}
		store("reconcile", in.scheduler.reconcile.Run)
		store("seal logs", in.scheduler.seals.Run)
		store("interventions", in.admin.operator.Loop().Run)
		store("blocked users", in.admin.operator.BlockedLoop().Run)
		for name, purge := range purges(m, s, in) {
			store(name, loop(name, purgeEvery, purge).Run)
		}
		rooms := loop("waiting rooms", admitEvery, in.admission.queue.Step)
		rooms.Idle, rooms.Busy, rooms.Timeout = idleAdmit, in.admission.queue.Busy, admitTimeout
		accept(rooms.Name, rooms.Run)
		if a.cfg.PushPrivateKey != "" {
			store("notices of admissions", in.notices.RunAdmissions)
		}
		accept("waitlist", in.waiting.service.Loop().Run)
		accept("draws", in.waiting.service.DrawLoop().Run)
	}
	if a.roles.API {
		accept("restock outlooks", in.waiting.restockOutlooks.Loop().Run)
		accept("captcha pictures", in.admission.captchas.Run)
		accept("sale watch", in.shop.store.Run)
		accept("inbox", in.inbox.Run)
	}
}

// purges returns what deletes rows after their retention, by the name of its part.
func purges(m messages, s stats, in runningParts) map[string]periodic.Step {
	return map[string]periodic.Step{
		"purge sessions":     in.accounts.store.Purge,
		"purge security log": in.accounts.security.Purge,
		"purge links":        in.accounts.store.PurgeLinks,
		"purge attempts":     s.refused.Purge,
		"purge dead letters": m.letters.Purge,
		"purge mail":         in.mailing.purge,
		"purge notices":      in.notices.Purge,
		"purge waitlist":     in.waiting.service.Purge,
		"purge webhooks":     in.webhooks.Purge,
	}
}

// Run runs the process until ctx ends or a part fails, then stops it in order: the
// listeners first, so that no new work arrives, then the parts that take stock, then the
// parts that write orders, the services last. It returns the joined errors.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	accepting, storing := newGroup(cancel), newGroup(cancel)
	for _, p := range a.storing {
		storing.start(p.name, p.run)
	}
	for _, p := range a.accepting {
		accepting.start(p.name, p.run)
	}
	err := a.serve(ctx, cancel)

	accepting.stop()
	storing.stop()
	if a.roles.Worker {
		stopping, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		if err := a.writer.Close(stopping); err != nil {
			a.log.WarnContext(ctx, "order writer did not finish in time", slog.Any("error", err))
		}
		done()
	}
	err = errors.Join(err, a.svc.Close())
	a.log.InfoContext(ctx, "ended")
	return err
}

// serve answers requests until ctx ends.
func (a *App) serve(ctx context.Context, cancel context.CancelCauseFunc) error {
	drained := make(chan struct{})
	context.AfterFunc(ctx, func() {
		a.log.InfoContext(ctx, "draining")
		close(drained)
	})
	var err error
	if a.server != nil {
		where := []slog.Attr{slog.String("addr", a.AdminAddr().String()), slog.Any("admin", a.AdminAddr())}
		if public := a.PublicAddr(); public != nil {
			where = []slog.Attr{slog.String("addr", public.String()), slog.Any("public", public), where[1]}
		}
		a.log.LogAttrs(ctx, slog.LevelInfo, "listening", where...)
		if err = a.server.Run(ctx); err != nil {
			cancel(err)
		}
	}
	<-drained // and ctx is done
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// Serve runs a process on Postgres and Redis until ctx ends. When a service is missing or
// unsuitable it returns an error that names it, with nothing left running.
func Serve(ctx context.Context, cfg *config.Config, roleNames []string, log *slog.Logger) error {
	a, err := Open(ctx, cfg, roleNames, log)
	if err != nil {
		return err
	}
	if newer, err := a.svc.db.NewerMigrations(ctx); err == nil && newer > 0 {
		log.WarnContext(ctx, "the database has migrations of a newer release: replace this binary", slog.Int("newer", newer))
	}
	if a.roles.API && !cfg.PaymentsOn() {
		log.WarnContext(ctx, "no payment provider: orders cannot be paid, and expire; for a trial set SECKILL_SANDBOX=trial")
	}
	return a.Run(ctx)
}

// Open connects to the services, wires a process with the given roles (api, worker,
// scheduler) and opens its listeners. Requests are answered only after Run, which also
// closes everything at its end.
func Open(ctx context.Context, cfg *config.Config, roleNames []string, log *slog.Logger) (*App, error) {
	return OpenOn(ctx, Host{}, cfg, roleNames, log)
}

// OpenOn is Open on a host.
func OpenOn(ctx context.Context, h Host, cfg *config.Config, roleNames []string, log *slog.Logger) (*App, error) {
	roles, err := rolesOf(roleNames)
	if err != nil {
		return nil, err
	}
	svc, err := openServicesOn(ctx, h, cfg)
	if err != nil {
		return nil, err
	}
	a, err := build(ctx, cfg, roles, svc, log)
	if err != nil {
		return nil, errors.Join(explainListen(ctx, cfg, roles, err), svc.Close())
	}
	return a, nil
}

// explainListen adds to a listener error the setting it came from and how to fix it. When
// the first of two listeners fails it also tries the other, so that both errors are
// reported. Other errors are returned unchanged.
func explainListen(ctx context.Context, cfg *config.Config, roles Roles, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "listen" {
		return err
	}
	if !roles.API || strings.HasPrefix(err.Error(), "admin listener") {
		return cannotListen("admin-addr", err)
	}
	var lc net.ListenConfig
	admin, also := lc.Listen(ctx, "tcp", cfg.AdminAddr)
	if also != nil {
		return errors.Join(cannotListen("http-addr", err), cannotListen("admin-addr", also))
	}
	_ = admin.Close()
	return cannotListen("http-addr", err)
}

func cannotListen(flag string, err error) error {
	what := "choose another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		what = "choose another port, or end what listens there"
	case errors.Is(err, syscall.EACCES):
		what = "choose a port from 1024, or give the process the right to this one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		what = "this host has no such address: choose one of its own, or none, as in :8080"
	}
	return fmt.Errorf("%s: %w: %s (--%s)", config.EnvName(flag), err, what, flag)
}

const (
	// memoryEvery is the interval at which an idle process returns unused memory to the
	// operating system. With GOGC=400 the collector itself would wait for 120 MB of garbage.
	memoryEvery = 10 * time.Second
	// memoryRest is the number of idle steps before unused memory is returned. Returned
	// pages cost the next load peak 10 to 15 % of its throughput, so a short pause within a
	// peak must not return them.
	memoryRest = 6
	// idleAllocation is the allocation between two steps, in bytes, above which a process
	// is not idle. The embedded Redis of an idle demo allocates 20 MB.
	idleAllocation = 48 << 20
	// minUnused is the unused memory worth a collection, in bytes.
	minUnused = 8 << 20
)

// memory returns unused memory while the process is idle.
type memory struct {
	allocated uint64
	idle      int // steps in a row
}

// step is a periodic.Step.
func (m *memory) step(context.Context) (map[string]int, error) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	allocated, live, objects, free := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(),
		samples[3].Value.Uint64()
	if m.idle++; allocated-m.allocated >= idleAllocation {
		m.idle = 0
	}
	m.allocated = allocated
	if unused := objects - min(objects, live) + free; m.idle >= memoryRest && unused > max(minUnused, live/4) {
		debug.FreeOSMemory()
	}
	return nil, nil
}
