// Command seckill is the whole product in one binary: the server and its workers, the
// demo, and the command line tools.
//
// This package parses arguments and calls one function per command. Its only logic is the
// exit code: 0 success, 1 a check had findings, 2 an invalid setting or argument, or an
// unreachable service.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK      = 0
	exitFinding = 1   // a check had findings
	exitUnfit   = 2   // an invalid setting or argument, or an unreachable service
	exitKilled  = 130 // a second signal: 128 + SIGINT, as in shells
)

// environment holds the files and variables that a command may use.
type environment struct {
	stdin   *os.File
	stdout  io.Writer
	stderr  io.Writer
	environ []string // as returned by os.Environ
}

func main() {
	ctx, stop := signalContext()
	code := run(ctx, os.Args[1:], environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		environ: os.Environ()})
	stop()
	os.Exit(code)
}

// signalContext returns a context that ends with the first SIGINT or SIGTERM. A second
// one ends the process immediately.
func signalContext() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		os.Exit(exitKilled)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}
