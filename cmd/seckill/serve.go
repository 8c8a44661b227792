package main

import (
	"runtime/debug"

	"seckill/internal/app"
	"seckill/internal/platform/config"
)

// heapGrowth is the default of GOGC, in percent. The hot path produces much garbage and
// keeps little: measured a sixth more requests per second than with Go's default of 100.
const heapGrowth = 400

// demoHeapGrowth keeps the demo small: it need not be fast.
const demoHeapGrowth = 50

// tuneHeap sets GOGC, unless the environment does.
func tuneHeap(environ []string, percent int) {
	lookup := lookupIn(environ)
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(percent)
	}
}

// roles are the parts of the server.
var roles = []string{"api", "worker", "scheduler"}

type serveCmd struct {
	Roles []string `default:"api,worker,scheduler" placeholder:"ROLE" help:"What this process does: api answers clients, worker writes orders, scheduler loads and opens sales. Any number of each."`
}

func (serveCmd) Help() string {
	return "Starts only when all settings and services are valid; prints each problem on one line. SIGTERM drains: " +
		"/readyz returns 503, running requests finish, what was read from the stream is written.\n\n" + examples(
		"seckill serve",
		"seckill serve --roles api --http-addr :8080",
		"seckill serve --roles worker,scheduler --admin-addr 127.0.0.1:9091",
	)
}

// Run serves until a signal arrives.
func (s serveCmd) Run(c *call) error {
	if err := app.Fit(c.cfg, s.Roles); err != nil {
		return err
	}
	tuneHeap(c.env.environ, heapGrowth)
	outliveReaders() // a closed log pipe must not end a sale
	return app.Serve(c.ctx, c.cfg, s.Roles, c.logger())
}

type demoCmd struct{}

func (demoCmd) Help() string {
	return "Runs shop, worker and scheduler in one process with an embedded Redis and SQLite, four sales and four " +
		"accounts, and prints where to go. Everything is forgotten at the end.\n\n" + examples(
		"seckill demo",
		"seckill demo --http-addr 127.0.0.1:8081 --admin-addr 127.0.0.1:9091",
	)
}

// Run runs the demo until a signal arrives.
func (demoCmd) Run(c *call) error {
	c.cfg.Profile = config.ProfileDevelopment // the only profile of the demo
	if err := c.cfg.Validate(); err != nil {
		return err
	}
	tuneHeap(c.env.environ, demoHeapGrowth)
	c.endWithReaders()
	return app.Demo(c.ctx, c.cfg, c.logger(), c.env.stdout)
}
