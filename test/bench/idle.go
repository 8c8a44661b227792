package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// An idle process is measured for one minute, beginning one minute after its start: by then
// its captcha pool is full and its polling loops have backed off.
const (
	idleAfter = time.Minute
	idleLasts = time.Minute
)

// idleProcess is an idle process that is measured.
type idleProcess struct {
	name string
	*server
	before time.Duration // CPU time when the measurement began
}

// idleCost returns the share of a core and the resident memory that `seckill serve` in
// all roles and `seckill demo` use while no client connects. They run side by side.
func idleCost(ctx context.Context, o options) (figures []figure, err error) {
	var sites []*site
	var idleProcesses []*idleProcess
	defer func() {
		for _, i := range idleProcesses {
			i.stop()
		}
		for _, s := range sites {
			err = errors.Join(err, s.remove(ctx))
		}
	}()
	programs := map[string]string{"": o.seckill}
	if o.old != "" {
		programs["former "] = o.old
	}
	for which, program := range programs {
		s, err := emptySite(ctx)
		if err != nil {
			return nil, err
		}
		sites = append(sites, s)
		migrate := exec.CommandContext(ctx, program, "migrate", "up")
		migrate.Env = s.environ()
		if out, err := migrate.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s migrate up: %w\n%s", program, err, out)
		}
		serve, err := startShop(ctx, program, s)
		if err != nil {
			return nil, err
		}
		idleProcesses = append(idleProcesses, &idleProcess{name: which + "serve", server: serve})
		demo, err := startDemo(ctx, program)
		if err != nil {
			return nil, err
		}
		idleProcesses = append(idleProcesses, &idleProcess{name: which + "demo", server: demo})
	}
	say("idle for %s, then measured for %s", idleAfter, idleLasts)
	if err := pause(ctx, idleAfter); err != nil {
		return nil, err
	}
	for _, i := range idleProcesses {
		if i.before, err = i.cpu(); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := pause(ctx, idleLasts); err != nil {
		return nil, err
	}
	for _, i := range idleProcesses {
		used, err := i.cpu()
		if err != nil {
			return nil, err
		}
		share := float64(used-i.before) / float64(time.Since(began))
		resident, err := i.resident()
		if err != nil {
			return nil, err
		}
		figures = append(figures,
			figure{Name: "idle " + i.name + ", share of a core", Ratio: 100 * share, Unit: "%", ToReach: "0.5"},
			figure{Name: "idle " + i.name + ", resident memory", Ratio: resident, Unit: "MB", ToReach: "100"})
	}
	return figures, nil
}

// startDemo runs `seckill demo` and waits until it is ready.
func startDemo(ctx context.Context, program string) (*server, error) {
	public, err := reserveAddr()
	if err != nil {
		return nil, err
	}
	admin, err := reserveAddr()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "demo")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "SECKILL_LOG_LEVEL=warn",
		"SECKILL_HTTP_ADDR=" + public, "SECKILL_ADMIN_ADDR=" + admin,
	}
	return start(ctx, cmd, public, admin)
}

// resident returns the resident memory of the process in MB.
func (s *server) resident() (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(text, []byte("VmRSS:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, errors.New("odd /proc status")
	}
	kB, err := strconv.ParseFloat(string(fields[0]), 64)
	return kB / 1024, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
