package drill

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// restartPause is the time between the end of a supervised process and its next start.
const restartPause = 200 * time.Millisecond

// ErrKilled means that a process did not end after SIGTERM.
var ErrKilled = errors.New("the process did not end after SIGTERM and was killed")

// Process is a process that is started again whenever it ends, as a service manager does:
// a worker that starts while a fault cuts it off from a service ends by itself.
type Process struct {
	command func() *exec.Cmd
	over    chan struct{} // closed, under mu, when the process is not started again
	ended   chan error    // how the last process ended

	mu  sync.Mutex
	cmd *exec.Cmd // guarded by mu
}

// Supervise starts a process. Command returns it for each start.
func Supervise(command func() *exec.Cmd) (*Process, error) {
	p := &Process{command: command, over: make(chan struct{}), ended: make(chan error, 1)}
	cmd, err := p.start()
	if err != nil {
		return nil, err
	}
	go func() { p.ended <- p.supervise(cmd) }()
	return p, nil
}

// start returns nil after End.
func (p *Process) start() (*exec.Cmd, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.over:
		return nil, nil
	default:
	}
	cmd := p.command()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.cmd = cmd
	return cmd, nil
}

// supervise returns how the last process ended.
func (p *Process) supervise(cmd *exec.Cmd) error {
	for {
		ended := cmd.Wait()
		select {
		case <-p.over:
		case <-time.After(restartPause):
		}
		next, err := p.start()
		if err != nil {
			return err
		}
		if next == nil {
			return ended
		}
		cmd = next
	}
}

// Kill sends SIGKILL. The process is started again.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return signal(p.cmd, syscall.SIGKILL)
}

// End sends SIGTERM and waits for the end of the process. A process that has not ended
// after the grace period is killed, and End returns ErrKilled. It is called once.
func (p *Process) End(grace time.Duration) error {
	p.mu.Lock()
	close(p.over)
	cmd := p.cmd
	err := signal(cmd, syscall.SIGTERM)
	p.mu.Unlock()
	select {
	case ended := <-p.ended:
		return errors.Join(err, ended)
	case <-time.After(grace):
		return errors.Join(err, ErrKilled, signal(cmd, syscall.SIGKILL), <-p.ended)
	}
}

// signal sends a signal, unless the process has ended by itself.
func signal(cmd *exec.Cmd, s syscall.Signal) error {
	if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s: %w", s, err)
	}
	return nil
}
