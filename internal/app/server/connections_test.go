package server_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"seckill/internal/app/server"
	"seckill/internal/testenv"
)

// serve runs a server at a free port until the test ends.
func serve(t *testing.T, opts server.Options) *server.Server {
	t.Helper()
	opts.PublicAddr, opts.DrainTimeout, opts.Log = "127.0.0.1:0", testenv.Wait, slog.New(slog.DiscardHandler)
	s, err := server.Listen(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// connection sends requests over one connection.
type connection struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, addr net.Addr) connection {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return connection{c, bufio.NewReader(c)}
}

// get returns the status and the body of a request; 0 when the connection was closed.
func (c connection) get(t *testing.T) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(c.Conn, "GET /graphql HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
		return 0, ""
	}
	res, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable && (!res.Close || res.Header.Get("Retry-After") == "") {
		t.Errorf("headers of a refusal: %v", res.Header)
	}
	return res.StatusCode, string(text)
}

func TestConnectionsBeyondTheLimitAreRefusedUntilOthersClose(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{AdminAddr: "127.0.0.1:0", PublicConnections: 2, RequestTimeout: 10 * testenv.Wait, Public: newPublic(t, server.PublicOptions{}), Admin: http.NotFoundHandler()})
	first, second := dial(t, s.PublicAddr()), dial(t, s.PublicAddr())
	for _, c := range []connection{first, second} {
		if status, _ := c.get(t); status != http.StatusOK {
			t.Fatalf("within the limit: status %d", status)
		}
	}
	if status, body := dial(t, s.PublicAddr()).get(t); status != http.StatusServiceUnavailable || !strings.Contains(body, `"OVERLOADED"`) {
		t.Errorf("beyond the limit: status %d, %s", status, body)
	}
	if status, _ := dial(t, s.AdminAddr()).get(t); status != http.StatusNotFound {
		t.Errorf("at the admin listener: status %d", status)
	}
	if status, _ := second.get(t); status != http.StatusOK {
		t.Errorf("a connection within the limit: status %d", status)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		status, _ := dial(t, s.PublicAddr()).get(t)
		return status == http.StatusOK
	}, "a new connection is served once another has closed")
}

// Of many connections that send nothing, a few beyond the limit stay open for a refusal.
func TestAFloodOfConnectionsKeepsABoundedNumberOpen(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{PublicConnections: 40, RequestTimeout: 10 * testenv.Wait, Public: newPublic(t, server.PublicOptions{})})
	const flood = 200
	closed := make(chan struct{}, flood)
	for range flood {
		c := dial(t, s.PublicAddr())
		go func() {
			_, _ = c.ReadByte()
			closed <- struct{}{}
		}()
	}
	for range flood - 42 {
		<-closed
	}
	select {
	case <-closed:
		t.Error("one of the connections within the limit was closed as well")
	default:
	}
}
