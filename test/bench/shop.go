package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// startShop runs `seckill serve` in all roles and waits until it is ready. Request logs
// are off, because the cost of a log line depends on its destination.
func startShop(ctx context.Context, program string, s *site, flags ...string) (*server, error) {
	public, err := reserveAddr()
	if err != nil {
		return nil, err
	}
	admin, err := reserveAddr()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(filepath.Dir(program), "seckill.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.CommandContext(ctx, program, append([]string{"serve"}, flags...)...)
	cmd.Stderr = log
	cmd.Env = s.environ("SECKILL_HTTP_ADDR="+public, "SECKILL_ADMIN_ADDR="+admin, "SECKILL_LOG_LEVEL=warn")
	return start(ctx, cmd, public, admin)
}

// start runs a program that listens on the given addresses, and waits until it is ready
// and idle.
func start(ctx context.Context, cmd *exec.Cmd, public, admin string) (*server, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	shop := &server{cmd: cmd, public: public, admin: admin}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); <-tick.C {
		if status, err := get(ctx, "http://"+admin+"/readyz"); err == nil && status == http.StatusOK {
			return shop, shop.waitIdle(ctx)
		}
		if ctx.Err() != nil {
			break
		}
	}
	shop.stop()
	return nil, fmt.Errorf("%v is not ready", cmd.Args)
}

// quietTimeout bounds the wait for an idle server: filling the image pool takes most of a
// minute.
const quietTimeout = 3 * time.Minute

// waitIdle waits until the process has filled its captcha image pool. That takes a twelfth
// of a core for a while; an idle server needs less than a hundredth.
func (s *server) waitIdle(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, err := s.cpu()
	for deadline := time.Now().Add(quietTimeout); err == nil && time.Now().Before(deadline); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		var now time.Duration
		if now, err = s.cpu(); now-last <= 2*clockTick {
			return err
		}
		last = now
	}
	return err
}

func get(ctx context.Context, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := (&http.Client{Timeout: startTimeout}).Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// reserveAddr returns an address for a process that does not report the one it listens
// on. No other process is assigned the port while this one runs: a socket without a
// listener stays bound to it, and the kernel skips bound ports. Servers with SO_REUSEADDR,
// as Go sets it, may still listen on it.
func reserveAddr() (string, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("reserve a port: %w", err), syscall.Close(fd))
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return "", errors.Join(fmt.Errorf("reserve a port: %w", err), syscall.Close(fd))
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port)), nil
}

// profile requests a CPU profile of the next seconds from the admin listener and writes it to
// a file of a directory; "" = no profile.
func (s *server) profile(ctx context.Context, dir, file string, seconds int) <-chan error {
	done := make(chan error, 1)
	if dir == "" {
		done <- nil
		return done
	}
	go func() {
		done <- s.keepProfile(ctx, filepath.Join(dir, file), seconds)
	}()
	return done
}

func (s *server) keepProfile(ctx context.Context, file string, seconds int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d",
		s.admin, seconds), nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Timeout: startTimeout}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, res.Body)
	return errors.Join(err, out.Close())
}
