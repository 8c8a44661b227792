package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of CPU time in /proc: 1/100 s on every Linux.
const clockTick = 10 * time.Millisecond

// startTimeout bounds the start of one server.
const startTimeout = 30 * time.Second

// server is a child process that listens on loopback.
type server struct {
	cmd    *exec.Cmd
	public string
	admin  string
}

// startServer runs a program and waits for the log line with its address.
func startServer(ctx context.Context, environ []string, program string, args ...string) (*server, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environ
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	heard := make(chan error, 1)
	go s.listen(stderr, heard)
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case err = <-heard:
	case <-timeout.C:
		err = fmt.Errorf("%v does not listen", args)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// listen waits for the log line with the address, then copies the rest of standard error.
func (s *server) listen(stderr io.Reader, heard chan<- error) {
	type addr struct {
		IP   string
		Port int
	}
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	var before []string
	found := false
	for lines.Scan() {
		var line struct {
			Msg           string
			Public, Admin *addr
		}
		if found || json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" || line.Public == nil {
			if found {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
			before = append(before, lines.Text())
			continue
		}
		s.public = net.JoinHostPort(line.Public.IP, strconv.Itoa(line.Public.Port))
		if line.Admin != nil {
			s.admin = net.JoinHostPort(line.Admin.IP, strconv.Itoa(line.Admin.Port))
		}
		found, before = true, nil
		heard <- nil
	}
	if !found {
		heard <- fmt.Errorf("%v ended:\n%s", s.cmd.Args, strings.Join(before, "\n"))
	}
}

// takeTurn resumes one server and stops the other, so that the background work of one does
// not slow the other.
func takeTurn(running, stopped *server) error {
	return errors.Join(stopped.cmd.Process.Signal(syscall.SIGSTOP), running.cmd.Process.Signal(syscall.SIGCONT))
}

// stop sends SIGTERM, and SIGKILL when the process does not end in time.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // the process may have ended already
	force := time.AfterFunc(startTimeout, func() { _ = s.cmd.Process.Kill() })
	defer force.Stop()
	_ = s.cmd.Wait() // the exit status does not matter here
}

// cpu returns the CPU time that the process has used so far.
func (s *server) cpu() (time.Duration, error) {
	stat, err := readStat(s.cmd.Process.Pid)
	return stat.cpu, err
}
