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
	redis, postmaster int // process ids
}

// findServices queries the process ids of both servers, which run on this machine.
func findServices(ctx context.Context, db *postgres.DB, redis *redisconn.Conn) (services, error) {
	info, err := redis.Cmd.Info(ctx, "server").Result()
	if err != nil {
		return services{}, fmt.Errorf("ask Redis for its process: %w", err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	pid, _, _ := strings.Cut(rest, "\r\n")
	var s services
	if s.redis, err = strconv.Atoi(pid); err != nil {
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

// usage is CPU time since the start.
type usage struct {
	server, redis, postgres, generator time.Duration
	idle                               time.Duration // of all cores
}

// used reads the CPU time of all processes.
func (w *suite) used(s *server) (u usage, err error) {
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
	if u.postgres, err = family(w.services.postmaster); err != nil {
		return u, err
	}
	u.idle, err = idle()
	return u, err
}

// since returns the usage between two readings.
func (u usage) since(before usage) usage {
	return usage{
		server: u.server - before.server, redis: u.redis - before.redis, postgres: u.postgres - before.postgres,
		generator: u.generator - before.generator, idle: u.idle - before.idle,
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

// family returns the CPU time of a process and its children, including ended ones.
func family(parent int) (time.Duration, error) {
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
