package server_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"seckill/internal/app/server"
	"seckill/internal/testenv"
)

// Clients that open connections and stall in the middle of a header or a body do not
// affect others. TestConnectionsThatStandStillAreCutOff has the timeouts that end them.
func TestThousandSlowSocketsDoNotHurtOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{
		RequestTimeout: 10 * testenv.Wait, // none is cut off meanwhile
		Public: newPublic(t, server.PublicOptions{GraphQL: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				_, _ = io.WriteString(w, "ok")
			}
		})}),
	})
	const slow, good = 1000, 100
	var conns [slow]net.Conn
	for i := range conns {
		head := "POST /graphql HTTP/1.1\r\nHost: x\r\n" // and never the remainder
		if i%2 == 0 {
			head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		}
		conns[i] = dawdle(t, s.PublicAddr().String(), head)
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: testenv.Wait}
	for range good {
		resp, err := client.Get("http://" + s.PublicAddr().String() + "/graphql")
		if err != nil {
			t.Fatalf("a good client is hurt: %v", err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(text) != "ok" {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
	}
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a slow connection was not open any more: %v", err)
		}
		_ = conn.Close()
	}
	client.CloseIdleConnections()
}

// dawdle sends the beginning of a request.
func dawdle(t *testing.T, addr, head string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	return conn
}
