package system_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

// A crowd of connections that send nothing takes all that a process accepts, and leaves
// the files that its operators, Postgres and Redis need.
func TestAProcessWithoutFreeConnectionsStaysInReachOfItsOperators(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.files = 256
	p := s.launch("api,worker,scheduler")
	if said := p.said(); !strings.Contains(said, "the limit of open files allows fewer sockets") {
		t.Errorf("no warning of the limit:\n%s", said)
	}
	crowd := make([]net.Conn, 0, 2*s.files)
	for range cap(crowd) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.public)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		crowd = append(crowd, c)
	}
	refused := func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.public)
		if err != nil {
			return false
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
			return true
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return true
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusServiceUnavailable
	}
	testenv.Eventually(t, testenv.Wait, refused, "a connection beyond the limit is refused at once")
	if open, err := p.metric("process_open_fds"); err != nil || open < 192 || open >= 256 {
		t.Errorf("%v open files, %v", open, err)
	}
	for _, c := range crowd {
		_ = c.Close()
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return !refused() }, "connections are accepted once others have closed")
	p.terminate()
	if code := p.left(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.said())
	}
}
