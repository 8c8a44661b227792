package redisconn

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// TestAClientOpensFewConnectionsAtOnce counts the TLS handshakes that a silent server has
// before it: a handshake is what costs a server that comes back.
func TestAClientOpensFewConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted []net.Conn
	arrived := make(chan struct{}, 64)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted = append(accepted, c)
			arrived <- struct{}{}
		}
	}()
	opts, err := parse("rediss://" + l.Addr().String() + "/0?dial_timeout=1h")
	if err != nil {
		t.Fatal(err)
	}
	client := (&Conn{opts: opts}).NewClient()
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range poolSize {
		callers.Go(func() { _ = client.Ping(ctx).Err() }) // ends with ctx
	}
	for range maxDials {
		select {
		case <-arrived:
		case <-time.After(time.Minute):
			t.Fatal("fewer connections than may be opened at once")
		}
	}
	select {
	case <-arrived:
		t.Errorf("more than %d connections are opened at once", maxDials)
	case <-time.After(200 * time.Millisecond): // an excess one comes within milliseconds
	}
	cancel()
	_ = l.Close()
	<-stopped
	for _, c := range accepted {
		_ = c.Close()
	}
	callers.Wait()
	_ = client.Close()
}
