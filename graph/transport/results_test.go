package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/graph/push"
	"seckill/graph/transport"
	"seckill/internal/platform/notifier"
	"seckill/internal/testenv"
)

// publicFeed is a server whose subscription feed follows a state of a hub. Each conversion
// of a state to an event has a number, which is part of the event.
type publicFeed struct {
	*fixture
	hub       *notifier.Hub
	converted atomic.Int64
	panics    atomic.Bool
}

func newPublicFeed(t *testing.T, public ...string) *publicFeed {
	t.Helper()
	p := &publicFeed{hub: notifier.NewHub(notifier.Options{})}
	p.fixture = setup(t, setupOptions{
		transport: transport.Options{Public: transport.Public{
			Fields: map[string][]string{"Subscription": public},
			Audience: func(ctx context.Context) string {
				name, _ := ctx.Value(userKey{}).(string)
				return strings.TrimRight(name, "0123456789")
			},
			Age: time.Hour,
		}},
		sockets: transport.SocketOptions{MaxPerUser: 100},
	})
	p.resolver.Feed = func(ctx context.Context, topic string) (<-chan string, error) {
		states, err := notifier.Follow(ctx, p.hub, topic, func(context.Context) (notifier.State[int], error) {
			return notifier.State[int]{Revision: 1}, nil
		})
		if err != nil {
			return nil, err
		}
		return push.Events(ctx, states, func(value int, snapshot bool) string {
			if p.panics.Load() && !snapshot {
				panic("on purpose")
			}
			return fmt.Sprintf("%d.%d", value, p.converted.Add(1))
		}), nil
	}
	return p
}

// watch subscribes a client and waits for its snapshot.
func (p *publicFeed) watch(token, document string) *wsClient {
	p.t.Helper()
	c := p.open(token)
	c.subscribe(strconv.FormatInt(p.converted.Load(), 10), document)
	c.expectPart(`"payload":{"data":{"feed":"0.`)
	return c
}

// event returns the number of the conversion that a client receives as value.
func (c *wsClient) event(value int) string {
	c.t.Helper()
	text, err := c.read()
	before := fmt.Sprintf(`"payload":{"data":{"feed":"%d.`, value)
	_, number, ok := strings.Cut(text, before)
	if err != nil || !ok {
		c.t.Fatalf("got %q, %v, want …%s…", text, err, before)
	}
	return strings.TrimSuffix(number, `"}}}`)
}

func TestOneEventForManySubscribersIsMarshalledOnce(t *testing.T) {
	t.Parallel()
	p := newPublicFeed(t, "feed")
	var crowd []*wsClient
	for n := range 20 {
		crowd = append(crowd, p.watch(fmt.Sprintf("user:buyer%d", n), `subscription{feed(topic:"a")}`))
	}
	staff := p.watch("user:staff", `subscription{feed(topic:"a")}`)
	other := p.watch("user:buyer50", `subscription Other{feed(topic:"a")}`)
	for value := 2; value < 5; value++ {
		p.hub.Publish(notifier.Event{Key: "a", Revision: int64(value), Value: value})
		shared := crowd[0].event(value)
		for _, c := range crowd[1:] {
			if got := c.event(value); got != shared {
				t.Errorf("a subscriber received conversion %s, another %s", got, shared)
			}
		}
		if staff.event(value) == shared || other.event(value) == shared {
			t.Error("another audience or document received the same conversion")
		}
	}
	if n := p.converted.Load(); n != 22+3*3 {
		t.Errorf("%d conversions, want 22 snapshots and 3 for each event", n)
	}
}

func TestEventsWithOtherFieldsAreMarshalledForEachSubscriber(t *testing.T) {
	t.Parallel()
	p := newPublicFeed(t, "ticks")
	one := p.watch("user:buyer1", `subscription{feed(topic:"a")}`)
	two := p.watch("user:buyer2", `subscription{feed(topic:"a")}`)
	p.hub.Publish(notifier.Event{Key: "a", Revision: 2, Value: 2, Terminal: true})
	if one.event(2) == two.event(2) {
		t.Error("two callers share a field that is not public")
	}
	one.expectPart(`"complete"`)
	two.expectPart(`"complete"`)
	testenv.Eventually(t, testenv.Wait, func() bool { return p.hub.Followers() == 0 }, "all have ended")
}

func TestEventStreamsShareWithSockets(t *testing.T) {
	t.Parallel()
	p := newPublicFeed(t, "feed")
	const document = `subscription{feed(topic:"a")}`
	one := p.watch("user:buyer1", document)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.server.URL+"/graphql?query="+url.QueryEscape(document), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer user:buyer2")
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	data := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	if text := data(); !strings.Contains(text, `"feed":"0.`) {
		t.Fatal(text)
	}
	p.hub.Publish(notifier.Event{Key: "a", Revision: 2, Value: 2, Terminal: true})
	if want := `{"data":{"feed":"2.` + one.event(2) + `"}}`; data() != want {
		t.Errorf("another event than the socket's %s", want)
	}
	for lines.Scan() && lines.Text() != "event: complete" {
	}
	if lines.Text() != "event: complete" {
		t.Error("the stream does not end")
	}
}

func TestAPanicOfOneSubscriberBlocksNoOther(t *testing.T) {
	t.Parallel()
	p := newPublicFeed(t, "feed")
	var crowd []*wsClient
	for range 5 {
		crowd = append(crowd, p.watch("user:buyer", `subscription{feed(topic:"a")}`))
	}
	p.panics.Store(true)
	p.hub.Publish(notifier.Event{Key: "a", Revision: 2, Value: 2})
	for _, c := range crowd {
		c.expectPart(`"type":"error"`)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return p.hub.Followers() == 0 }, "all have ended")
}

func TestASubscriberThatLeavesStopsFollowing(t *testing.T) {
	t.Parallel()
	p := newPublicFeed(t, "feed")
	gone := p.watch("user:buyer1", `subscription{feed(topic:"a")}`)
	stays := p.watch("user:buyer2", `subscription{feed(topic:"a")}`)
	gone.send(`{"id":"0","type":"complete"}`)
	testenv.Eventually(t, testenv.Wait, func() bool { return p.hub.Followers() == 1 }, "one follows")
	p.hub.Publish(notifier.Event{Key: "a", Revision: 2, Value: 2})
	stays.event(2)
}
