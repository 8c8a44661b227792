package transport_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/graph/transport"
	"seckill/internal/platform/telemetry"
	"seckill/internal/testenv"
)

// lines is a log in memory.
type lines struct {
	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// operations returns the lines of operations, without their times.
func (l *lines) operations(t *testing.T) (out []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range strings.Lines(l.out.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line["msg"] == "operation" {
			delete(line, "time")
			delete(line, "ms")
			out = append(out, line)
		}
	}
	return out
}

// counted returns the number of operations by field and code.
func counted(t *testing.T, g prometheus.Gatherer) map[string]uint64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "seckill_graphql_operation_seconds" {
				labels := m.GetLabel() // in alphabetical order
				counts[labels[1].GetValue()+" "+labels[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return counts
}

func TestEveryOperationIsCountedByFieldAndCode(t *testing.T) {
	t.Parallel()
	registry, log := prometheus.NewRegistry(), &lines{}
	f := setup(t, setupOptions{
		transport: transport.Options{Registerer: registry, Log: slog.New(slog.NewJSONHandler(log, nil))},
		configure: func(s *http.Server) {
			served := s.Handler
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served.ServeHTTP(w, r.WithContext(telemetry.WithRequest(r.Context(), "req-12345678", "")))
			})
		},
	})
	f.query(`query Greeting { hello }`, "")
	f.query(`{ hello ...Rest } fragment Rest on Query { hello }`, "")
	f.query(`{ hello count(n: 1) }`, "")
	f.query(`{ fail(code: "FORBIDDEN") }`, "")
	f.query(`{ nothing }`, "")
	f.query(`{ hello }`, "", header("Authorization", "Bearer unknown"))
	f.post(`{`)
	f.query(`subscription { ticks(n: 1) }`, "")
	f.query(`subscription { ticks(n: 1) }`, "", header("Accept", "text/event-stream"))
	c := f.open("user:ann")
	c.subscribe("1", `subscription Count { ticks(n: 1) }`)
	c.expectPart(`"next"`)
	c.expectPart(`"complete"`)
	testenv.Eventually(t, testenv.Wait, func() bool { return len(log.operations(t)) == 1 }, "the subscription is logged") // after its last frame
	c.subscribe("2", `{ nothing }`)
	c.expectPart(`"error"`)
	want := map[string]uint64{
		"hello OK": 2, "several OK": 1, "fail FORBIDDEN": 1, "none GRAPHQL_VALIDATION_FAILED": 2, "none UNAUTHENTICATED": 1,
		"none BAD_USER_INPUT": 1, "ticks BAD_USER_INPUT": 1, "ticks OK": 2,
	}
	var diff string
	same := func() bool {
		diff = cmp.Diff(want, counted(t, registry))
		return diff == "" && len(log.operations(t)) == 2
	}
	defer func() {
		if t.Failed() {
			t.Logf("counts (-want +got):\n%s", diff)
		}
	}()
	testenv.Eventually(t, testenv.Wait, same, "each operation is counted once")
	for i, want := range []map[string]any{
		{"level": "INFO", "msg": "operation", "operation": "ticks", "name": "Count", "code": "OK"},
		{"level": "INFO", "msg": "operation", "operation": "", "name": "", "code": "GRAPHQL_VALIDATION_FAILED"},
	} {
		got := log.operations(t)[i]
		user, _ := got["user"].(string)
		delete(got, "user")
		if diff := cmp.Diff(want, got); diff != "" || len(user) != 16 {
			t.Errorf("line of user %q (-want +got):\n%s", user, diff)
		}
	}
}
