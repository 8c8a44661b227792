package transport

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"seckill/internal/platform/auth"
)

// Buffers of one socket. The upgrade frees net/http's own buffers of 4 kB each, which an
// idle socket does not need. Only control frames use the write buffer.
const (
	readBuffer  = 256 // bytes
	writeBuffer = 144 // bytes; a control frame has at most 127
)

// upgradeWriter wraps the response writer for the websocket library: it hands over a
// connection with small buffers and a write deadline, and prevents the library from
// quoting request headers when it refuses an upgrade.
type upgradeWriter struct {
	http.ResponseWriter
	writeTimeout time.Duration
	conn         *deadlineConn // after Hijack
}

// Write drops the library's error text; the status is sufficient.
func (u *upgradeWriter) Write(p []byte) (int, error) { return len(p), nil }

// Hijack returns the connection with small buffers and a write deadline.
func (u *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		return nil, nil, err
	}
	d := &deadlineConn{Conn: conn, timeout: u.writeTimeout}
	u.conn = d
	if len(early) > 0 {
		d.early = io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn)
	}
	return d, bufio.NewReadWriter(bufio.NewReaderSize(d, readBuffer), bufio.NewWriterSize(d, writeBuffer)), nil
}

// deadlineConn sets a deadline on every write. Without it a client that stops reading
// blocks the writer, and everything that waits for it, forever.
type deadlineConn struct {
	net.Conn
	timeout time.Duration
	early   io.Reader    // what the client sent before the upgrade response; nil = nothing
	set     atomic.Int64 // when the deadline was last set, Unix ns
}

func (c *deadlineConn) Read(p []byte) (int, error) {
	if c.early != nil {
		return c.early.Read(p)
	}
	return c.Conn.Read(p)
}

// Write sets a new deadline when the last one is older than a tenth of the timeout:
// setting it costs as much as the rest of a small write.
func (c *deadlineConn) Write(p []byte) (int, error) {
	now := time.Now()
	if now.UnixNano()-c.set.Load() > int64(c.timeout/10) {
		if err := c.SetWriteDeadline(now.Add(c.timeout)); err != nil {
			return 0, err
		}
		c.set.Store(now.UnixNano())
	}
	return c.Conn.Write(p)
}

// originAllowed reports whether a page of the request's origin may open a socket: the
// server's own pages, the allowed origins, and clients that are not browsers. When the
// connection is encrypted, an http page is not the server's own, because an attacker on
// the network can change it. The reverse is allowed, as a proxy may terminate TLS.
func originAllowed(r *http.Request, opts SocketOptions) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) &&
		(u.Scheme == "https" || !auth.ClientFrom(r.Context()).Secure) {
		return true
	}
	return slices.Contains(opts.Origins, strings.ToLower(origin))
}

// offered returns the subprotocols that the client offers.
func offered(r *http.Request) []string {
	var out []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
