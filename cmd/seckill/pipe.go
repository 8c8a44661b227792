package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"seckill/internal/telemetry"
)

// outliveReaders keeps a command from being killed by SIGPIPE when whoever reads its
// output goes away: what it has to say from then on is lost.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }

// endWithReaders ends a command in order, as SIGTERM does, when whoever reads its
// output goes away, so that nothing is left behind.
func (c *call) endWithReaders() {
	outliveReaders()
	ctx, stop := context.WithCancel(c.ctx)
	c.ctx = ctx
	c.env.stdout = watched(c.env.stdout, stop)
	c.env.stderr = watched(c.env.stderr, stop)
}

// watched calls gone when what is written cannot be read by anybody any more.
// Terminals stay what they are, for the log's colours.
func watched(out io.Writer, gone func()) io.Writer {
	if file, ok := out.(*os.File); !ok || telemetry.IsTerminal(file) {
		return out
	}
	return &pipe{out: out, gone: sync.OnceFunc(gone)}
}

// pipe is an output that may have lost its reader.
type pipe struct {
	out  io.Writer
	gone func()
}

// Write writes.
func (p *pipe) Write(text []byte) (int, error) {
	n, err := p.out.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.gone()
	}
	return n, err
}
