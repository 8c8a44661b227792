package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/server"
	"seckill/internal/testenv"
)

// Clients that open connections and stall in the middle of a header or a body are
// disconnected by the timeouts and do not affect others.
func TestThousandSlowSocketsDoNotHurtOthers(t *testing.T) {
	t.Parallel()
	s, err := server.Listen(t.Context(), server.Options{
		PublicAddr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
		Public: newPublic(t, server.PublicOptions{GraphQL: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				_, _ = io.WriteString(w, "ok")
			}
		})}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	const slow = 1000
	var wg sync.WaitGroup
	var held atomic.Int64
	held.Store(slow)
	start, good := time.Now(), 0
	for i := range slow {
		head := "POST /graphql HTTP/1.1\r\nHost: x\r\n" // and never the remainder
		if i%2 == 0 {
			head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		}
		wg.Go(func() { dawdle(t, s.PublicAddr().String(), head); held.Add(-1) })
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: testenv.Wait}
	for held.Load() == slow { // before the first of them is disconnected
		resp, err := client.Get("http://" + s.PublicAddr().String() + "/graphql")
		if err != nil {
			t.Fatalf("a good client is hurt: %v", err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(text) != "ok" {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		good++
	}
	wg.Wait()
	t.Logf("%d good requests meanwhile; the slow ones were held for %v", good, time.Since(start))
	if good == 0 { // how many depends on the machine
		t.Error("no good request was answered while the others dawdled")
	}
	client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// dawdle sends the beginning of a request and waits for the server to disconnect.
func dawdle(t *testing.T, addr, head string) {
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, head)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadAll(conn); err != nil {
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			t.Error("the server waits for ever")
		}
	}
}
