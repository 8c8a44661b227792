package system_test

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// collector receives OTLP over HTTP.
type collector struct {
	t     testing.TB
	url   string
	mu    sync.Mutex
	spans []*tracepb.Span // guarded by mu
}

func newCollector(t testing.TB) *collector {
	c := &collector{t: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s %s %s: %v", r.Method, r.URL.Path, r.Header.Get("Content-Type"), err)
		return
	}
	raw, err := io.ReadAll(unpacked)
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(raw, &data)
	}
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range data.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	w.WriteHeader(http.StatusOK)
}

// named returns the spans with a name, of all traces.
func (c *collector) named(name string) (found []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	return found
}

// within returns the span of a trace with a name; nil when there is none.
func (c *collector) within(trace []byte, name string) *tracepb.Span {
	for _, s := range c.named(name) {
		if string(s.GetTraceId()) == string(trace) {
			return s
		}
	}
	return nil
}

func TestOneTraceLeadsFromTheRequestToThePush(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := newSite(t, func(cfg *config.Config) { cfg.TracesURL, cfg.TracesShare = config.Secret(c.url), 1 })
	s.logs = &lockedBuffer{}
	api, stopAPI := s.open("api", "scheduler")
	made := s.seed(seed.Input{Users: 8, Stock: 8, PathTTL: 10 * time.Minute})
	var sockets []*socket
	for _, buyer := range made.Users {
		p, err := s.insist(buyer.AccessToken, order(made.ItemID, buyer.Path))
		if err != nil || p.OrderTask == nil {
			t.Fatalf("placed %+v, %v", p, err)
		}
		k := s.dial(buyer.AccessToken)
		k.follow("1", p.OrderTask.ID)
		if e, done := k.event(); done || e.Kind != "SNAPSHOT" {
			t.Fatalf("first event %+v", e)
		}
		sockets = append(sockets, k)
	}
	stopWorker := s.start("worker") // another process: the trace travels in the message
	for _, k := range sockets {
		for done := false; !done; {
			_, done = k.event()
		}
	}
	page := exposition(t, api.AdminAddr().String())
	stopWorker()
	stopAPI()

	requests := c.named("graphql placeOrder")
	if len(requests) != len(made.Users) {
		t.Fatalf("%d requests were traced", len(requests))
	}
	handled, linked := c.named("handle order"), 0
	for _, batch := range c.named("write orders") {
		linked += len(batch.GetLinks())
	}
	if len(handled) != len(requests) || linked != len(requests) {
		t.Errorf("%d orders were handled, %d are linked by batches", len(handled), linked)
	}
	pushes := 0
	for _, request := range requests {
		if span := c.within(request.GetTraceId(), "handle order"); span == nil || len(span.GetParentSpanId()) == 0 {
			t.Errorf("the trace has handle order %v", span)
		}
		if push := c.within(request.GetTraceId(), "push"); push != nil && len(push.GetParentSpanId()) > 0 {
			pushes++
		}
	}
	// Followers also read their task every few seconds, at different times: a state that
	// comes by such a read before its message is in no trace.
	if pushes == 0 {
		t.Errorf("no push of %d is in the trace of its request", len(requests))
	}
	// The first order of a batch has the whole batch in its trace.
	first := requests[0].GetTraceId()
	for _, batch := range c.named("write orders") {
		first = batch.GetTraceId()
	}
	for _, name := range []string{"graphql placeOrder", "reserve", "redis evalsha", "write orders", "postgres transaction", "postgres statement"} {
		if c.within(first, name) == nil {
			t.Errorf("the trace has no span %q", name)
		}
	}
	id := hex.EncodeToString(first)
	if !strings.Contains(page, `# {trace_id="`) {
		t.Error("the metrics have no exemplar")
	}
	logged := false
	for line := range strings.Lines(s.logs.String()) {
		var l struct {
			Msg, Operation, Name, Code, User string
			TraceID                          string `json:"trace_id"`
			Ms                               float64
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "request" && l.TraceID == id {
			logged = true
			if l.Operation != "placeOrder" || l.Name != "P" || l.Code != "OK" || len(l.User) != 16 || l.Ms <= 0 {
				t.Errorf("the line of the request is %s", line)
			}
		}
	}
	if !logged {
		t.Error("no log line has the id of the trace")
	}
}

// exposition returns the metrics in the format of OpenMetrics, as Prometheus asks for them.
func exposition(t testing.TB, admin string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Wait}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAReceiverThatIsAwayDelaysNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) {
		cfg.TracesURL, cfg.TracesShare = config.Secret("http://"+testenv.ReserveAddr(t)), 1
	})
	_, stop := s.open("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: 10 * time.Minute})
	if p, err := s.insist(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path)); err != nil || p.OrderTask == nil {
		t.Fatalf("placed %+v, %v", p, err)
	}
	s.drained(made.SaleID, 1)
	stop() // without an error
}
