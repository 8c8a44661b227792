package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/app/server"
	"seckill/internal/testenv"
)

func TestConnectionsThatStandStillAreCutOff(t *testing.T) {
	t.Parallel()
	const request = "GET /graphql HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		after  time.Duration
		answer string
		unread time.Duration // how long the client does not read
	}{
		"nothing comes":                  {"", 2 * time.Second, "", 0},
		"a header without an end":        {"POST /graphql HTTP/1.1\r\nHost: x\r\n", 2 * time.Second, "", 0},
		"half a body":                    {"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", 5 * time.Second, "cut off", 0},
		"no second request":              {request, 75 * time.Second, "whole", 0},
		"half a second request":          {request + "GET /gra", 77 * time.Second, "whole", 0},
		"a header that is too large":     {"GET /graphql HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", time.Second, "431", 0},
		"a client that reads no answers": {strings.Replace(request, "/graphql", "/graphql?large", 1), 16 * time.Second, "", 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, stop := listen(t, 0)
				start := time.Now()
				conn := l.Dial()
				go func() { _, _ = io.WriteString(conn, c.sent) }()
				<-time.After(c.unread) // of the bubble's clock
				got, err := io.ReadAll(conn)
				if err != nil && !errors.Is(err, io.ErrClosedPipe) {
					t.Error(err)
				}
				if took := time.Since(start); took > c.after {
					t.Errorf("held for %v", took)
				}
				if !strings.Contains(string(got), c.answer) || c.answer == "" && len(got) > 0 {
					t.Errorf("answered %q", got)
				}
				_ = conn.Close()
				stop()
			})
		})
	}
}

// A request that crosses the close of its connection is lost, and a proxy may not send it
// again: nginx and cloud load balancers keep connections for a minute.
func TestConnectionsOutliveTheMinuteThatProxiesKeepThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, stop := listen(t, 0)
		defer stop()
		conn := l.Dial()
		defer func() { _ = conn.Close() }()
		answers := bufio.NewReader(conn)
		for range 2 {
			if _, err := io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(answer.Body); err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			<-time.After(61 * time.Second) // of the bubble's clock
		}
	})
}

// A request that the settings allow a minute is not cut off after the 15 s of the default.
func TestTimeoutsOfConnectionsGrowWithThatOfRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head, rest string
		pause      time.Duration
	}{
		"a slow header":   {"GET /graphql HTTP/1.1\r\nHost: x\r\n", "\r\n", 20 * time.Second},
		"a slow body":     {"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{", "}", 50 * time.Second},
		"a slow handler":  {"GET /graphql?slow HTTP/1.1\r\nHost: x\r\n", "\r\n", 0},
		"all three added": {"POST /graphql?slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{", "}", 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, stop := listen(t, time.Minute)
				defer stop()
				conn := l.Dial()
				defer func() { _ = conn.Close() }()
				go func() {
					_, _ = io.WriteString(conn, c.head)
					<-time.After(c.pause) // of the bubble's clock
					_, _ = io.WriteString(conn, c.rest)
				}()
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if string(got) != "whole" || err != nil {
					t.Errorf("answered %q, %v", got, err)
				}
			})
		})
	}
}

// listen runs a server on pipes until stop.
func listen(t *testing.T, requests time.Duration) (l *testenv.Pipes, stop func()) {
	t.Helper()
	l = testenv.NewPipes()
	s, err := server.Listen(t.Context(), server.Options{
		PublicListener: l, Public: newPublic(t, server.PublicOptions{GraphQL: http.HandlerFunc(reads)}), Log: slog.New(slog.DiscardHandler),
		RequestTimeout: requests,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return l, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// reads reports in its response whether the whole body was received.
func reads(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "large" {
		_, _ = w.Write(make([]byte, 1<<20))
		return
	}
	if _, err := io.ReadAll(r.Body); err != nil {
		_, _ = io.WriteString(w, "cut off")
		return
	}
	if r.URL.RawQuery == "slow" {
		<-time.After(59 * time.Second) // of the bubble's clock
	}
	_, _ = io.WriteString(w, "whole")
}
