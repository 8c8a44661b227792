package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

const patience = testenv.Wait

// process is one process with a hub and a running bus.
type process struct {
	hub *Hub
	bus *Bus
	raw *stream.Broadcast
}

func startProcess(t *testing.T, conn *redisconn.Conn, key string) *process {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	raw, err := stream.NewBroadcast(stream.BroadcastConfig{
		Publish: conn.NewClient(), Read: conn.NewBlocking(), Key: key, Block: 50 * time.Millisecond, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	hub := NewHub(Options{})
	p := &process{hub: hub, raw: raw, bus: NewBus(hub, raw, log)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.bus.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done; _ = raw.Close() })
	select {
	case <-p.bus.Ready():
	case <-time.After(patience):
		t.Fatal("the bus does not listen")
	}
	return p
}

func onBoth(t *testing.T, test func(t *testing.T, conn *redisconn.Conn, key string)) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, conn, prefix+"{bus}:status")
	})
	t.Run("in-process", func(t *testing.T) {
		t.Parallel()
		server := miniredis.RunT(t)
		conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(server.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		test(t, conn, "{bus}:status")
	})
}

func receive(t *testing.T, s *Subscription) Event {
	t.Helper()
	select {
	case <-s.Ready():
		e, _ := s.Take()
		return e
	case <-time.After(patience):
		t.Fatal("no event")
	}
	return Event{}
}

func TestAChangeIsPublishedAlthoughItsRequestHasEnded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, key string) {
		worker, api := startProcess(t, conn, key), startProcess(t, conn, key)
		there := subscribe(t, api.hub, "k")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := worker.bus.Publish(ended, []StatusEntry{{Key: "k", Revision: 2}}); err != nil {
			t.Fatal(err)
		}
		if e := receive(t, there); e.Revision != 2 {
			t.Errorf("%+v", e)
		}
	})
}

func TestAChangeReachesTheFollowersOfEveryProcess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, key string) {
		worker, api := startProcess(t, conn, key), startProcess(t, conn, key)
		const n = 2500 // more than fit in one message
		var entries []StatusEntry
		var here, there []*Subscription
		for i := range n {
			name := fmt.Sprint("task:", i)
			entries = append(entries, StatusEntry{Key: name, Revision: 2, Terminal: true, Value: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
			here, there = append(here, subscribe(t, worker.hub, name)), append(there, subscribe(t, api.hub, name))
		}
		if err := worker.bus.Publish(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for _, s := range []*Subscription{here[i], there[i]} {
				e := receive(t, s)
				if e.Revision != 2 || !e.Terminal || string(e.Value.(json.RawMessage)) != fmt.Sprintf(`{"n":%d}`, i) {
					t.Fatalf("%+v", e)
				}
			}
		}
		if n := conn.Cmd.XLen(t.Context(), key).Val(); n != 3 {
			t.Errorf("%d messages", n)
		}
		// The other direction; and no follower receives a change of its own process
		// twice.
		if err := api.bus.Publish(t.Context(), []StatusEntry{{Key: "task:0", Revision: 3}}); err != nil {
			t.Fatal(err)
		}
		if e := receive(t, here[0]); e.Revision != 3 || e.Value != nil {
			t.Errorf("%+v", e)
		}
		for i, s := range here[1:] {
			if e, ok := s.Take(); ok {
				t.Fatalf("%d: %+v came back", i+1, e)
			}
		}
	})
}

func TestBrokenChangesTakeNoneOfTheOthersWithThem(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	api := startProcess(t, conn, prefix+"bus")
	for _, payload := range []string{"", "{", "[1,2]", `{"key":"k"}`, `[{"key":1}]`, "\xff"} {
		if err := api.raw.Send(t.Context(), stream.NewMessage("x", []byte(payload))); err != nil {
			t.Fatal(err)
		}
	}
	s := subscribe(t, api.hub, "good")
	mixed := `[{"key":"good","revision":"x"},7,{"key":"","revision":1},{"key":"good","revision":0},{"key":"good","revision":4,"new":true,"value":null}]`
	if err := api.raw.Send(t.Context(), stream.NewMessage("x", []byte(mixed))); err != nil {
		t.Fatal(err)
	}
	if e := receive(t, s); e.Revision != 4 || e.Value != nil {
		t.Errorf("%+v", e)
	}
}

func TestWithoutRedisTheFollowersHereAreNotified(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	worker := startProcess(t, server.Conn(), "bus")
	s := subscribe(t, worker.hub, "k")
	server.Kill()
	if err := worker.bus.Publish(t.Context(), []StatusEntry{{Key: "k", Revision: 1}}); err == nil {
		t.Error("no error although Redis is away")
	}
	if e := receive(t, s); e.Revision != 1 {
		t.Errorf("%+v", e)
	}
}

func TestEncodingKeepsEveryChange(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("a", maxValue) + `"`)
	var entries []StatusEntry
	for i := range 3000 {
		entries = append(entries, StatusEntry{Key: fmt.Sprint(i), Revision: int64(i + 1), Value: json.RawMessage(`{"a":1}`)})
	}
	entries = append(entries,
		StatusEntry{Key: "large", Revision: 1, Value: large},
		StatusEntry{Key: "no json", Revision: 1, Value: json.RawMessage(`{`)},
		StatusEntry{Key: "", Revision: 1}, StatusEntry{Key: "no revision"})
	for i := range 20 { // more than fit in one message
		entries = append(entries, StatusEntry{Key: fmt.Sprint("wide", i), Revision: 1, Value: json.RawMessage(`"` + strings.Repeat("a", maxValue-2) + `"`)})
	}
	seen := map[string]StatusEntry{}
	for _, payload := range encode(entries) {
		if len(payload) > maxEncoded+2 {
			t.Errorf("a message of %d bytes", len(payload))
		}
		decoded, skipped := decode(payload)
		if skipped != 0 {
			t.Errorf("%d skipped", skipped)
		}
		for _, e := range decoded {
			seen[e.Key] = e
		}
	}
	for _, e := range entries {
		if !e.valid() {
			continue
		}
		if e.Key == "large" || e.Key == "no json" {
			e.Value = nil
		}
		if len(e.Value) == 0 {
			e.Value = nil
		}
		if diff := cmp.Diff(e, seen[e.Key]); diff != "" {
			t.Fatal(diff)
		}
		delete(seen, e.Key)
	}
	if len(seen) != 0 {
		t.Errorf("%d more than there were", len(seen))
	}
	if got := encode(nil); got != nil {
		t.Errorf("%q", got)
	}
}

func FuzzWhatIsTakenForARecordIsJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":"b","c":12,"d":0}`, `{"a":"b"`, `{"a":"b"}}`, `{"a":"b",}`, `{,"a":1}`, `{"a":01}`, `{"a":}`, `{"a"}`, `{`, `{}`, `"a"`,
		`{"a":"\x"}`, `{"a":"` + "\n" + `"}`, `{"a":"b""c":1}`, `{"a":1 }`, `{"a":-1}`, `{"a":1.5}`, `,"a":1}`, `{"a":{"b":1}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if isRecord(text) && !json.Valid(text) {
			t.Errorf("%q is taken for a record", text)
		}
	})
}

// The text is the one of TestTheRecordOfATaskIsFixed in internal/buy/order.
func TestWhatTheWorkerPublishesOfATaskIsARecord(t *testing.T) {
	t.Parallel()
	text := `{"id":"01937b3c-8f00-7abc-9def-000000000007","user":"01937b3c-0001-7abc-9def-0123456789ab",` +
		`"sale":"01937b3c-0002-7abc-9def-012345678917","item":"01937b3c-0003-7abc-9def-0123456789ab","quantity":2,` +
		`"status":"FAILED","revision":3,"failure":"SOLD_OUT","createdAtMs":1795204800123,"updatedAtMs":1795204801123}`
	if !isRecord([]byte(text)) {
		t.Errorf("%s is read by encoding/json", text)
	}
}

func TestAnEntryIsWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	for _, e := range []StatusEntry{
		{Key: "task:1", Revision: 2, Terminal: true, Value: json.RawMessage(`{"a":"b","c":12}`)},
		{Key: "buyer:1", Revision: 1 << 62},
		{Key: "a \"b\" <ü>\x00", Revision: 1, Value: json.RawMessage(`[1.5,{"a":null}]`)},
		{Key: "\xff", Revision: 1, Value: json.RawMessage(`null`)},
	} {
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := appendEntry(nil, e); !ok || string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzDecodeOfTheBusNeverFails(f *testing.F) {
	f.Add([]byte(`[{"key":"a","revision":1,"terminal":true,"value":{"x":1}}]`))
	f.Add([]byte(`[null,{"key":"a"},[]]`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		entries, _ := decode(payload)
		for _, e := range entries {
			if !e.valid() {
				t.Fatalf("%+v", e)
			}
			_ = e.event()
		}
	})
}
