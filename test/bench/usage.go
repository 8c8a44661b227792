package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

// services holds the processes whose share of an order's CPU time is reported.
type services struct {
	redis, postmaster int    // process ids
	store             string // name and version of the store
}

// findServices queries the process ids of both servers, which run on this machine.
func findServices(ctx context.Context, db *postgres.DB, redis *redisconn.Conn) (services, error) {
	info, err := redis.Cmd.Info(ctx, "server").Result()
	if err != nil {
		return services{}, fmt.Errorf("ask Redis for its process: %w", err)
	}
	s := services{store: "Redis " + infoField(info, "redis_version:")}
	if version := infoField(info, "valkey_version:"); version != "" {
		s.store = "Valkey " + version
	}
	if s.redis, err = strconv.Atoi(infoField(info, "process_id:")); err != nil {
		return services{}, fmt.Errorf("process of Redis: %w", err)
	}
	var backend int
	if err := db.SQL.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return services{}, fmt.Errorf("ask Postgres for its process: %w", err)
	}
	stat, err := readStat(backend)
	s.postmaster = stat.parent
	return s, err
}

// infoField returns a field of INFO, "" when there is none.
func infoField(info, name string) string {
	_, rest, _ := strings.Cut(info, "\n"+name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// usage is CPU time since the start, and what Redis and the server have counted.
type usage struct {
	server, redis, postgres, generator time.Duration
	idle                               time.Duration // of all cores
	scripting                          time.Duration // of Redis in scripts
	scripts, commands                  float64       // those that scripts call are commands too
	objects                            float64       // allocated by the server, where it was measured
}

// counted reads what Redis has counted.
func (u *usage) counted(ctx context.Context, redis *redisconn.Conn) error {
	info, err := redis.Cmd.Info(ctx, "commandstats").Result()
	if err != nil {
		return fmt.Errorf("commands of Redis: %w", err)
	}
	for line := range strings.Lines(info) {
		var name string
		var calls, micros float64
		line, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		name, line, _ = strings.Cut(line, ":")
		if _, err := fmt.Sscanf(line, "calls=%f,usec=%f", &calls, &micros); err != nil {
			return fmt.Errorf("commands of Redis: %w", err)
		}
		u.commands += calls
		if strings.HasPrefix(name, "eval") || strings.HasPrefix(name, "fcall") {
			u.scripts += calls
			u.scripting += time.Duration(micros * float64(time.Microsecond))
		}
	}
	return nil
}

// used reads the CPU time of all processes.
func (w *suite) used(ctx context.Context, s *server) (u usage, err error) {
	if u.server, err = s.cpu(); err != nil {
		return u, err
	}
	redis, err := readStat(w.services.redis)
	if err != nil {
		return u, err
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		return u, err
	}
	u.redis, u.generator = redis.cpu, self.cpu
	if u.postgres, err = processTreeCPU(w.services.postmaster); err != nil {
		return u, err
	}
	if u.idle, err = idle(); err != nil {
		return u, err
	}
	return u, u.counted(ctx, w.redis)
}

// since returns the usage between two readings.
func (u usage) since(before usage) usage {
	return usage{
		server: u.server - before.server, redis: u.redis - before.redis, postgres: u.postgres - before.postgres,
		generator: u.generator - before.generator, idle: u.idle - before.idle,
		scripting: u.scripting - before.scripting, scripts: u.scripts - before.scripts,
		commands: u.commands - before.commands,
		objects:  u.objects - before.objects,
	}
}

// plus returns the sum of two differences.
func (u usage) plus(o usage) usage { return u.since(usage{}.since(o)) }

// times returns the usage in a multiple of the time.
func (u usage) times(n float64) usage {
	d := func(d time.Duration) time.Duration { return time.Duration(float64(d) * n) }
	return usage{
		server: d(u.server), redis: d(u.redis), postgres: d(u.postgres), generator: d(u.generator), idle: d(u.idle),
		scripting: d(u.scripting), scripts: u.scripts * n, commands: u.commands * n, objects: u.objects * n,
	}
}

// processStat holds the fields read from /proc/<pid>/stat.
type processStat struct {
	parent int
	cpu    time.Duration // of the process
	reaped time.Duration // of children that have ended
}

func readStat(pid int) (processStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // the name may contain spaces
	f := strings.Fields(rest)
	if !ok || len(f) < 15 {
		return processStat{}, fmt.Errorf("odd /proc stat: %s", text)
	}
	var n [5]int64
	for i, field := range []string{f[1], f[11], f[12], f[13], f[14]} { // ppid, utime, stime, cutime, cstime
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			return processStat{}, err
		}
	}
	return processStat{int(n[0]), time.Duration(n[1]+n[2]) * clockTick, time.Duration(n[3]+n[4]) * clockTick}, nil
}

// processTreeCPU returns the CPU time of a process and its children, including ended ones.
func processTreeCPU(parent int) (time.Duration, error) {
	head, err := readStat(parent)
	if err != nil {
		return 0, err
	}
	sum := head.cpu + head.reaped
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue // not a process
		}
		stat, err := readStat(pid)
		if errors.Is(err, fs.ErrNotExist) || err == nil && stat.parent != parent {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += stat.cpu
	}
	return sum, nil
}

// idle returns the idle time of all cores.
func idle() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text)) // cpu user nice system idle iowait …
	if len(f) < 6 || f[0] != "cpu" {
		return 0, errors.New("odd /proc/stat")
	}
	var sum int64
	for _, field := range f[4:6] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * clockTick, nil
}
