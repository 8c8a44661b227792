package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// warmUp is the time between the first push and the measurement.
const warmUp = 300 * time.Millisecond

// watch subscribes to the stock of a sale.
const watch = `{"id":"1","type":"subscribe","payload":{"query":"subscription($s:ID!){saleStock(saleId:$s){kind serverTime items{id stock{level remaining revision total}}}}","variables":{"s":"sale_01jd3v6g2pe0c8m2v1k4h5n6p7"}}}`

// pushers is the number of sockets that receive pushes.
const pushers = 100

// sockets measures pushes and the memory of idle sockets.
func sockets(ctx context.Context, w *suite, r *report) error {
	say("sockets")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	done := map[string][]sample{}
	var frame []byte
	for range w.opts.rounds {
		for _, kind := range []string{childPush, childWrites, childWoken} {
			child, err := startServer(ctx, w.site.environ(), self, "child", kind)
			if err != nil {
				return err
			}
			var echo []byte
			if kind != childPush {
				echo = frame
			}
			s, got, err := pushRound(ctx, child, echo, w.opts.lasts)
			child.stop()
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			if done[kind] = append(done[kind], s); kind == childPush {
				frame = got
			}
		}
	}
	r.note("pushes", done[childPush])
	r.note("bare websocket writes", done[childWrites])
	r.note("bare websocket writes, one per change", done[childWoken])
	r.Figures = append(r.Figures,
		compare("pushes / bare websocket writes of the same bytes", done[childPush], done[childWrites], "", "0.70"),
		compare("pushes / bare websocket writes, one per change", done[childPush], done[childWoken], "", "0.70"))
	bare, followed, err := idleMemory(ctx, w)
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures,
		figure{Name: "memory per idle socket", Ratio: bare, Unit: "kB", Wanted: "44", ToReach: "20"},
		figure{Name: "memory per idle socket that follows a sale", Ratio: followed, Unit: "kB"})
	return nil
}

// pushRound counts the frames that a server writes to many sockets. echo is the frame
// that a bare server repeats.
func pushRound(ctx context.Context, s *server, echo []byte, lasts time.Duration) (sample, []byte, error) {
	conns := make([]*socket, 0, pushers)
	defer func() {
		for _, c := range conns {
			_ = c.conn.Close()
		}
	}()
	for range pushers {
		c, err := dialSocket(ctx, s.public, "x")
		if err != nil {
			return sample{}, nil, err
		}
		conns = append(conns, c)
	}
	var frames atomic.Int64
	var last atomic.Pointer[[]byte]
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			for {
				text, err := c.read()
				if err != nil {
					return // closed at the end of the round
				}
				if bytes.Contains(text, []byte(`"next"`)) && frames.Add(1)%1000 == 1 {
					kept := bytes.Clone(text)
					last.Store(&kept)
				}
			}
		})
	}
	start := [][]byte{[]byte(watch)}
	if echo != nil {
		start = append(start, echo)
	}
	for _, c := range conns { // all are read by now, so that no data collects in buffers
		for _, text := range start {
			if err := c.send(text); err != nil {
				return sample{}, nil, err
			}
		}
	}
	select {
	case <-time.After(warmUp):
	case <-ctx.Done():
	}
	before, err := s.cpu()
	if err != nil {
		return sample{}, nil, err
	}
	began, first := time.Now(), frames.Load()
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
	n, took := int(frames.Load()-first), time.Since(began)
	after, err := s.cpu()
	for _, c := range conns {
		_ = c.conn.Close()
	}
	wg.Wait()
	if n == 0 {
		return sample{}, nil, errors.New("nothing was pushed")
	}
	return sample{n: n, took: took, cpu: after - before}, *last.Load(), err
}

// idleMemory returns the memory in kB that the product uses per idle socket: signed in
// only, and with a subscription to a sale.
func idleMemory(ctx context.Context, w *suite) (bare, followed float64, err error) {
	// The first sockets allocate what all sockets share.
	first, err := dialSocket(ctx, w.shop.public, w.soldOut.Users[0].AccessToken)
	if err != nil {
		return 0, 0, err
	}
	defer first.conn.Close()
	before, err := memory(ctx, w.shop)
	if err != nil {
		return 0, 0, err
	}
	var conns []*socket
	defer func() {
		for _, c := range conns {
			_ = c.conn.Close()
		}
	}()
	for i := range w.opts.sockets {
		c, err := dialSocket(ctx, w.shop.public, w.soldOut.Users[i%len(w.soldOut.Users)].AccessToken)
		if err != nil {
			return 0, 0, err
		}
		conns = append(conns, c)
	}
	idle, err := memory(ctx, w.shop)
	if err != nil {
		return 0, 0, err
	}
	follow := []byte(`{"id":"1","type":"subscribe","payload":{"query":"subscription($s:ID!){saleStatus(saleId:$s){__typename}}","variables":{"s":"` + w.soldOut.SaleID + `"}}}`)
	for _, c := range conns {
		if err := c.send(follow); err != nil {
			return 0, 0, err
		}
		if text, err := c.read(); err != nil || !bytes.Contains(text, []byte(`"next"`)) {
			return 0, 0, fmt.Errorf("follow a sale: %s %w", text, err)
		}
	}
	following, err := memory(ctx, w.shop)
	n := float64(w.opts.sockets) * 1000
	return (idle - before) / n, (following - before) / n, err
}

// memory returns the memory of a server process after a garbage collection: heap in use
// and stacks.
func memory(ctx context.Context, s *server) (float64, error) {
	for range 2 { // the second collection empties sync.Pools
		if _, err := get(ctx, "http://"+s.admin+"/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := (&http.Client{Timeout: startTimeout}).Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name != "go_memstats_heap_alloc_bytes" && name != "go_memstats_stack_inuse_bytes" {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, lines.Err()
}

// socket is a minimal WebSocket client, so that the server dominates the measurement.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
	buf  []byte
}

// dialSocket opens a socket and signs in.
func dialSocket(ctx context.Context, addr, token string) (*socket, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /graphql HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n", addr)
	if err != nil {
		return nil, err
	}
	c := &socket{conn: conn, in: bufio.NewReaderSize(conn, 32<<10), buf: make([]byte, 4<<10)}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(line) == "" {
			break
		}
	}
	hello, err := json.Marshal(map[string]any{"type": "connection_init",
		"payload": map[string]string{"authorization": "Bearer " + token}})
	if err != nil {
		return nil, err
	}
	if err := c.send(hello); err != nil {
		return nil, err
	}
	if text, err := c.read(); err != nil || !bytes.Contains(text, []byte("connection_ack")) {
		return nil, fmt.Errorf("sign in: %s %w", text, err)
	}
	return c, nil
}

// Opcodes of RFC 6455, with the bit of a final frame.
const (
	frameText  = 0x81
	frameClose = 0x88
	framePing  = 0x89
	framePong  = 0x8a
)

// send writes one masked text frame.
func (c *socket) send(text []byte) error { return c.write(frameText, text) }

func (c *socket) write(kind byte, text []byte) error {
	frame := []byte{kind}
	if len(text) < 126 {
		frame = append(frame, 0x80|byte(len(text)))
	} else {
		frame = append(frame, 0x80|126)
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(text)))
	}
	var mask [4]byte
	_, _ = rand.Read(mask[:]) // never fails
	frame = append(frame, mask[:]...)
	for i, b := range text {
		frame = append(frame, b^mask[i%4])
	}
	_, err := c.conn.Write(frame)
	return err
}

// read returns the text of the next text frame, valid until the next read. It answers
// pings: the server closes sockets that do not. A close is an error with its code.
func (c *socket) read() ([]byte, error) {
	for {
		kind, text, err := c.frame()
		switch {
		case err != nil:
			return nil, err
		case kind == frameText:
			return text, nil
		case kind == framePing:
			if err := c.write(framePong, text); err != nil {
				return nil, err
			}
		case kind == frameClose && len(text) >= 2:
			return nil, fmt.Errorf("closed by the server: %d %s", binary.BigEndian.Uint16(text), text[2:])
		}
	}
}

// frame reads the next frame.
func (c *socket) frame() (kind byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(head[1] & 0x7f)
	if n == 126 {
		var long [2]byte
		if _, err := io.ReadFull(c.in, long[:]); err != nil {
			return 0, nil, err
		}
		n = int(binary.BigEndian.Uint16(long[:]))
	}
	if n > len(c.buf) {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	_, err = io.ReadFull(c.in, c.buf[:n])
	return head[0], c.buf[:n], err
}
