package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// connections is the number of keep-alive connections of the generator.
const connections = 256

// answerTimeout bounds one response; a slower server has failed.
const answerTimeout = 10 * time.Second

// load is a series of prepared requests, so that the generator costs little more than its
// system calls.
type load struct {
	addr    string
	request func(i int) []byte // complete HTTP request; i counts from 0
	want    []byte             // substring of the body of every good response
	count   int                // number of requests; 0 = as many as fit into the time
	lasts   time.Duration      // when count is 0
	conns   int                // connections; 0 = the usual number
	latency *latencies         // of good responses; nil = not measured
	// answered gets the good responses, at once from many connections; nil = not wanted.
	answered func(i int, answer []byte)
}

// loadResult is the outcome of a load.
type loadResult struct {
	good, bad int
	again     int // responses that ask the client to retry with the same key
	took      time.Duration
	sample    string // the first bad response
}

// run sends the load and reads every response completely.
func (l load) run(ctx context.Context) (loadResult, error) {
	conns, err := l.connect(ctx)
	if err != nil {
		return loadResult{}, err
	}
	var next, good, bad, again atomic.Int64
	var sample atomic.Pointer[string]
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	began := time.Now()
	deadline := began.Add(l.lasts)
	for n, conn := range conns {
		wg.Go(func() {
			defer conn.Close()
			c := client{conn: conn, buf: make([]byte, 32<<10)}
			for {
				i := int(next.Add(1)) - 1
				if l.count > 0 && i >= l.count || l.count == 0 && time.Now().After(deadline) {
					return
				}
				asked := time.Now()
				ok, body, err := c.ask(l.request(i), l.want)
				for tries := 0; err == nil && !ok && tries < maxRetries && isTransient(body); tries++ {
					again.Add(1)
					ok, body, err = c.ask(l.request(i), l.want)
				}
				if err != nil {
					errs[n] = err
					return
				}
				if ok {
					l.latency.add(time.Since(asked))
					good.Add(1)
					if l.answered != nil {
						l.answered(i, body)
					}
					continue
				}
				bad.Add(1)
				text := string(body)
				sample.CompareAndSwap(nil, &text)
			}
		})
	}
	wg.Wait()
	res := loadResult{good: int(good.Load()), bad: int(bad.Load()), again: int(again.Load()), took: time.Since(began)}
	if s := sample.Load(); s != nil {
		res.sample = *s
	}
	return res, errors.Join(errs...)
}

func (l load) connect(ctx context.Context) ([]net.Conn, error) {
	n := connections
	if l.conns > 0 {
		n = l.conns
	}
	if l.count > 0 {
		n = min(n, l.count)
	}
	conns := make([]net.Conn, 0, n)
	for range n {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.addr)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

// maxRetries bounds the retries of one order.
const maxRetries = 50

// isTransient reports whether a response asks for a retry with the same idempotency key.
// Buyers retry too; on a busy machine Redis can time out.
func isTransient(answer []byte) bool {
	return bytes.Contains(answer, []byte(`"TIMEOUT"`)) || bytes.Contains(answer, []byte(`"OVERLOADED"`)) ||
		bytes.Contains(answer, []byte(`"UNAVAILABLE"`))
}

// client sends requests and reads responses on one connection.
type client struct {
	conn net.Conn
	buf  []byte
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("Content-Length: ")
	statusOK      = []byte("HTTP/1.1 200 ")
)

// ask sends one request and reads its response. It is good when its status is 200 and its
// body contains want.
func (c *client) ask(request, want []byte) (ok bool, answer []byte, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return false, nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return false, nil, fmt.Errorf("send: %w", err)
	}
	n, size := 0, -1
	for size < 0 || n < size {
		if n == len(c.buf) {
			return false, nil, io.ErrShortBuffer
		}
		got, err := c.conn.Read(c.buf[n:])
		if err != nil {
			return false, nil, fmt.Errorf("read: %w", err)
		}
		n += got
		if size < 0 {
			if size, err = answerSize(c.buf[:n]); err != nil {
				return false, nil, err
			}
		}
	}
	answer = c.buf[:size]
	return bytes.HasPrefix(answer, statusOK) && bytes.Contains(answer, want), answer, nil
}

// answerSize returns the length of head and body together, -1 while the head is
// incomplete.
func answerSize(b []byte) (int, error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return -1, nil
	}
	at := bytes.Index(b[:end], contentLength)
	if at < 0 {
		return 0, fmt.Errorf("an answer without length: %.200s", b)
	}
	digits := b[at+len(contentLength) : end+2]
	length, err := strconv.Atoi(string(digits[:bytes.IndexByte(digits, '\r')]))
	if err != nil {
		return 0, fmt.Errorf("an answer of odd length: %w", err)
	}
	return end + len(headEnd) + length, nil
}

// httpRequest prepares a POST of a body; token "" = anonymous.
func httpRequest(addr, token, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /graphql HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n", addr)
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}
