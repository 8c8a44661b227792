package transport_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/graph/transport"
	"seckill/internal/testenv"
)

const idleFrames = `{"type":"connection_init"}`

// A client that stops reading is disconnected within ten seconds and its goroutines end:
// by the write deadline while events are written, otherwise by the missing pong.
func TestStuckSocketReaderIsGone(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{"flooded": `subscription{flood(bytes:8000)}`, "quiet": `subscription{idle}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, setupOptions{sockets: transport.SocketOptions{PingEvery: 4 * time.Second, PingTimeout: 4 * time.Second}})
			conn := f.rawSocket(t)
			defer func() { _ = conn.Close() }()
			writeFrame(t, conn, idleFrames)
			writeFrame(t, conn, `{"id":"1","type":"subscribe","payload":{"query":"`+document+`"}}`)
			// The client reads nothing from here on; the kernel buffers a few MB.
			f.eventually("the socket is gone", func() bool { return f.sockets.Count() == 0 && f.resolver.Streams.Load() == 0 })
		})
	}
}

// rawSocket upgrades without the library, so that no goroutine reads from the connection.
func (f *fixture) rawSocket(t *testing.T) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the socket is open", func() bool { return f.sockets.Count() > 0 })
	return conn
}

// writeFrame sends a masked text frame; the mask is zero.
func writeFrame(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	frame := []byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}
	if len(text) > 125 {
		frame = []byte{0x81, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}
	}
	if _, err := conn.Write(append(frame, text...)); err != nil {
		t.Fatal(err)
	}
}

// Frames that arrive together with the upgrade request must not be lost.
func TestFramesBehindTheUpgradeAreRead(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	conn := f.rawSocket(t)
	defer func() { _ = conn.Close() }()
	writeFrame(t, conn, idleFrames)
	buf := make([]byte, 4096)
	var got strings.Builder
	for !strings.Contains(got.String(), "connection_ack") {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(buf[:n])
	}
}

// usage is the memory of the process after a garbage collection.
type usage struct {
	goroutines int
	bytes      uint64 // live heap and stacks
}

func measure() usage {
	runtime.GC()
	runtime.GC() // the first collection shrinks stacks and runs finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse}
}

// Not parallel: it counts goroutines and memory of the whole process. The bare
// connections of the clients count too, about 0.5 kB each.
func TestSocketsAreCheapAndLeaveNothing(t *testing.T) {
	const sockets = 1000 // per wave; five waves make 5,000
	f := setup(t, setupOptions{sockets: transport.SocketOptions{PingEvery: time.Hour}})
	f.wave(20, false) // fills pools and caches
	base := measure()
	clients := f.crowd(sockets)
	full := measure()
	perSocket := float64(full.bytes-base.bytes) / sockets
	t.Logf("an idle socket with a stream: %.1f kB, %.2f goroutines", perSocket/1024, float64(full.goroutines-base.goroutines)/sockets)
	if perSocket > larger*20<<10 || full.goroutines-base.goroutines > 3*sockets+50 {
		t.Errorf("%.1f kB and %d goroutines for %d sockets", perSocket/1024, full.goroutines-base.goroutines, sockets)
	}
	leave(clients, true)
	f.eventually("all are gone", func() bool { return f.sockets.Count() == 0 && f.resolver.Streams.Load() == 0 })
	f.wave(sockets, true) // the spans of stacks and buffers reach their size in the first waves
	once := measure()
	for i := range 3 {
		f.wave(sockets, i%2 == 0)
	}
	var after usage
	defer func() {
		t.Logf("%d sockets came and went: %d goroutines before, %d after; %d kB before, %d kB after two thousand, %d kB after all",
			5*sockets, base.goroutines, after.goroutines, base.bytes>>10, once.bytes>>10, after.bytes>>10)
	}()
	f.eventually("goroutines are back, and memory does not grow with every wave", func() bool {
		after = measure() // stacks are freed by several collections
		return after.goroutines <= base.goroutines+5 && after.bytes <= once.bytes+larger*2<<20
	})
}

// crowd opens sockets with one idle stream each. The clients are bare connections without
// goroutines.
func (f *fixture) crowd(n int) []net.Conn {
	f.t.Helper()
	clients := make([]net.Conn, n)
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				clients[i] = f.quiet()
			}
		})
	}
	wg.Wait()
	f.eventually("all streams run", func() bool { return int(f.resolver.Streams.Load()) == n })
	return clients
}

func (f *fixture) quiet() net.Conn {
	var d net.Dialer
	conn, err := d.DialContext(f.t.Context(), "tcp", f.server.Listener.Addr().String())
	if err != nil {
		f.t.Error(err)
		return nil
	}
	upgrade := "GET /graphql HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
	_, _ = io.WriteString(conn, upgrade)
	buf := make([]byte, 512)
	if _, err := conn.Read(buf); err != nil { // the upgrade response
		f.t.Error(err)
	}
	for _, text := range []string{idleFrames, `{"id":"1","type":"subscribe","payload":{"query":"subscription{idle}"}}`} {
		frame := []byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}
		_, _ = conn.Write(append(frame, text...))
	}
	return conn
}

// leave closes the clients with a close frame if politely, else by closing the
// connection.
func leave(clients []net.Conn, politely bool) {
	for _, c := range clients {
		if politely {
			_, _ = c.Write([]byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8})
		} else if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// wave opens and closes n sockets.
func (f *fixture) wave(n int, politely bool) {
	f.t.Helper()
	leave(f.crowd(n), politely)
	f.eventually("all are gone", func() bool { return f.sockets.Count() == 0 && f.resolver.Streams.Load() == 0 })
}

// One slow client must delay neither the others nor the drain.
func TestDrainDoesNotWaitForStuckClients(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{WriteTimeout: time.Second, DrainWindow: time.Millisecond}})
	conn := f.rawSocket(t)
	defer func() { _ = conn.Close() }()
	writeFrame(t, conn, idleFrames)
	writeFrame(t, conn, `{"id":"1","type":"subscribe","payload":{"query":"subscription{flood(bytes:8000)}"}}`)
	f.eventually("the stream runs", func() bool { return f.resolver.Begun.Load() == 1 })
	c := f.open("")
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Wait)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- f.sockets.Drain(ctx) }()
	c.expectClose(1012, "")
	if err := <-drained; err != nil {
		t.Error(err)
	}
}
