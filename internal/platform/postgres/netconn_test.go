package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// setup returns a connection to a server that the test controls.
func setup(t *testing.T, silence time.Duration) (w *netConn, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := dialer{silence: silence}.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client.(*netConn), server
}

func TestASilentServerEndsARead(t *testing.T) {
	t.Parallel()
	w, _ := setup(t, 10*time.Millisecond)
	_, err := w.Read(make([]byte, 1))
	if _, ok := err.(*net.OpError); !ok || !errors.Is(err, os.ErrDeadlineExceeded) { //nolint:errorlint // lib/pq looks at the bare type
		t.Errorf("error is %T %v, want a timed-out *net.OpError", err, err)
	}
}

func TestTheEndOfAContextEndsTheReadsOfItsStatementOnly(t *testing.T) {
	t.Parallel()
	w, server := setup(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	release := w.bound(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Read(make([]byte, 1))
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the next read of the same statement: %v", err)
	}
	release()
	if _, err := server.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Read(make([]byte, 1)); err != nil {
		t.Errorf("a read of the next statement: %v", err)
	}
}

func TestALateCutMissesTheNextStatement(t *testing.T) {
	t.Parallel()
	w, server := setup(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	w.bound(ctx) // not released: its cut happens while the next statement is bound
	release := w.bound(t.Context())
	defer release()
	cancel()
	if _, err := server.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Read(make([]byte, 1)); err != nil {
		t.Errorf("read: %v", err)
	}
}
