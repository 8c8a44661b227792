// Command seckill is the whole product in one binary: the server and its
// workers, the demo, and the tools around them.
//
// This package parses what it is given and calls one function of ours per
// command. It decides nothing but exit codes: 0 it worked, 1 a check found
// something, 2 a setting is unusable or a service cannot be reached.
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
	exitFinding = 1   // a check found something
	exitUnfit   = 2   // an unusable setting or argument, an unreachable service
	exitKilled  = 130 // a second signal: 128 + SIGINT, as shells have it
)

// environment is what a command may touch of the world around it.
type environment struct {
	stdin   *os.File
	stdout  io.Writer
	stderr  io.Writer
	environ []string // as of os.Environ
}

func main() {
	ctx, stop := signalContext()
	code := run(ctx, os.Args[1:], environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()})
	stop()
	os.Exit(code)
}

// signalContext returns a context that ends with the first SIGINT or SIGTERM. A
// second one ends the process at once, for a person who will not wait.
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
