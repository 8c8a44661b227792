package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"seckill/internal/platform/telemetry"
)

// outliveReaders ignores SIGPIPE, so that a command survives when the reader of its
// output closes the pipe. Later output is lost.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }

// endWithReaders ends a command as SIGTERM does when the reader of its output closes the
// pipe, so that it can clean up.
func (c *call) endWithReaders() {
	outliveReaders()
	ctx, stop := context.WithCancel(c.ctx)
	c.ctx = ctx
	c.env.stdout = watched(c.env.stdout, stop)
	c.env.stderr = watched(c.env.stderr, stop)
}

// watched returns a writer that calls gone when the reader of out has closed the pipe.
// Terminals are returned unchanged, to keep the log's colours.
func watched(out io.Writer, gone func()) io.Writer {
	if file, ok := out.(*os.File); !ok || telemetry.IsTerminal(file) {
		return out
	}
	return &pipe{out: out, gone: sync.OnceFunc(gone)}
}

// pipe is an output that calls gone when a write fails.
type pipe struct {
	out  io.Writer
	gone func()
}

// Write implements io.Writer.
func (p *pipe) Write(text []byte) (int, error) {
	n, err := p.out.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.gone()
	}
	return n, err
}
