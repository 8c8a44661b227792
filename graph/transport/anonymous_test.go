package transport_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"seckill/graph/transport"
	"seckill/internal/platform/auth"
	"seckill/internal/testenv"
)

// networks returns a server with 1,000 sockets, of which one network may use 100, and a
// function that sets the network of the following requests.
func networks(t *testing.T) (f *fixture, from func(addr string)) {
	t.Helper()
	var network atomic.Value
	network.Store(netip.Addr{})
	f = setup(t, setupOptions{
		sockets: transport.SocketOptions{MaxSockets: 1000, InitTimeout: testenv.Wait},
		client:  func() auth.Client { return auth.Client{Addr: network.Load().(netip.Addr)} },
	})
	return f, func(addr string) { network.Store(netip.MustParseAddr(addr)) }
}

func TestOneNetworkCannotTakeAllSocketsAnonymously(t *testing.T) {
	t.Parallel()
	f, from := networks(t)
	from("192.0.2.1")
	f.events(`subscription{idle}`).expect(`event: next|data: {"data":{"idle":1}}`)
	first := f.open("")
	for range 98 {
		f.open("")
	}
	late := f.dial(dialOptions{})
	late.init("")
	late.expectClose(1013, "Too many sockets")
	f.query(`subscription{idle}`, "", header("Accept", "text/event-stream")).contains(t, 429, "RATE_LIMITED")
	f.open("user:ann") // signed-in users are counted by user
	from("192.0.2.2")
	f.open("")
	from("192.0.2.1")
	_ = first.conn.Close(1000, "")
	f.eventually("the socket is forgotten", func() bool { return f.sockets.Count() == 101 })
	f.open("")
}

func TestOneNetworkCannotTakeAllSocketsWithoutAWord(t *testing.T) {
	t.Parallel()
	f, from := networks(t)
	from("192.0.2.1")
	var silent []*wsClient
	for range 100 {
		silent = append(silent, f.dial(dialOptions{}))
	}
	f.eventually("all are counted", func() bool { return f.sockets.Count() == 100 })
	_, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(f.server.URL, "http")+"/graphql", nil)
	if err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "10" {
		t.Errorf("one more: %v, %v", resp, err)
	}
	silent[0].init("user:ann") // frees its anonymous slot
	silent[0].expect(`{"type":"connection_ack"}`)
	silent[1].init("")
	silent[1].expect(`{"type":"connection_ack"}`)
	f.open("")
	f.open("user:bob")
}

// One IPv6 customer has many networks.
func TestNetworksWithinOneNetworkShareItsBound(t *testing.T) {
	t.Parallel()
	f, from := networks(t)
	for _, addr := range []string{"2001:db8:0:a1::1", "2001:db8:0:b1::1"} {
		from(addr)
		for range 100 {
			f.open("")
		}
	}
	from("2001:db8:0:c1::1") // of the same /56, which has the bound of two
	late := f.dial(dialOptions{})
	late.init("")
	late.expectClose(1013, "Too many sockets")
	f.open("user:ann")
	from("2001:db8:0:1c1::1")
	f.open("")
}

func TestAnonymousSocketsLeaveHalfOfThePoolToTheSignedIn(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{MaxSockets: 10}})
	var anonymous []*wsClient
	for range 10 {
		anonymous = append(anonymous, f.open(""))
	}
	for _, oldest := range anonymous[:5] {
		oldest.expectClose(1013, "Too many sockets")
	}
	for i := range 10 {
		f.open(fmt.Sprintf("user:buyer-%d", i))
	}
	for _, rest := range anonymous[5:] {
		rest.expectClose(1013, "Too many sockets")
	}
	if n := f.sockets.Count(); n != 10 {
		t.Errorf("%d sockets are open", n)
	}
	_, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(f.server.URL, "http")+"/graphql", nil)
	if err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more than the pool holds: %v", resp)
	}
}

func TestASignedInStreamTakesTheSlotOfAnAnonymousOneOnlyWhenThePoolIsFull(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{MaxSockets: 4}})
	oldest, kept := f.open(""), f.open("")
	f.events(`subscription{idle}`, header("Authorization", "Bearer user:ann")).expect(`event: next|data: {"data":{"idle":1}}`)
	f.open("user:bob") // before it signs in it is the third anonymous socket of two
	oldest.expectClose(1013, "Too many sockets")
	f.open("user:cid")
	kept.send(`{"type":"ping"}`)
	kept.expect(`{"type":"pong"}`)
	f.events(`subscription{idle}`, header("Authorization", "Bearer user:dan")).expect(`event: next|data: {"data":{"idle":1}}`)
	kept.expectClose(1013, "Too many sockets")
}
