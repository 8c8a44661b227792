package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogLinesCarryTheRequestID(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, LogOptions{}).With(slog.String("part", "edge"))
	log.InfoContext(WithRequestID(context.Background(), "req-12345678"), "hello", slog.Int("n", 1))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	delete(line, "time")
	want := map[string]any{"level": "INFO", "msg": "hello", "part": "edge", "n": 1.0, "request_id": "req-12345678"}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestSecretsNeverReachTheLog(t *testing.T) {
	t.Parallel()
	for _, format := range []Format{FormatJSON, FormatText} {
		var out bytes.Buffer
		log := NewLogger(&out, LogOptions{Format: format})
		log.Info("x",
			slog.String("path_token", "hunter2"), slog.String("Authorization", "Bearer hunter2"), slog.Any("payload", map[string]string{"a": "hunter2"}),
			slog.String("captcha_answer", "hunter2"), slog.Group("login", slog.String("password", "hunter2")), slog.Int("token_count", 7))
		if got := out.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, masked) || !strings.Contains(got, "7") {
			t.Errorf("logged %s", got)
		}
	}
}

func TestLevelsBelowAreQuiet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	NewLogger(&out, LogOptions{Level: slog.LevelWarn}).Info("x")
	if out.Len() != 0 {
		t.Errorf("logged %s", out.String())
	}
}

func TestRequestIDsFromOutsideAreCheckedOrReplaced(t *testing.T) {
	t.Parallel()
	if got := AcceptRequestID("0f7a9c3e-1234"); got != "0f7a9c3e-1234" {
		t.Errorf("a good id became %q", got)
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "short", "new\nline-injected", strings.Repeat("x", 65)} {
		got := AcceptRequestID(bad)
		if got == bad || seen[got] || !wellFormed.MatchString(got) {
			t.Errorf("%q became %q", bad, got)
		}
		seen[got] = true
	}
	if RequestID(context.Background()) != "" {
		t.Error("an empty context has a request id")
	}
}

func show(r *Registry) string {
	rec := httptest.NewRecorder()
	r.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, _ := io.ReadAll(rec.Body)
	return string(body)
}

func TestMetricsAreShownByTheirNames(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	m := NewReservationMetrics(r)
	m.Attempts.With("accepted").Add(3)
	m.Script.Observe(0.002)
	NewOrderMetrics(r).Written.Inc()
	NewStreamMetrics(r).Dead.Inc()
	NewServerMetrics(r).Requests.With("/graphql", "200").Inc()
	r.GaugeFunc(Desc{Package: "reservation", Name: "queue_count", Help: "Waiting attempts."}, func() float64 { return 9 })
	got := show(r)
	for _, line := range []string{
		`seckill_reservation_attempts_total{outcome="accepted"} 3`,
		`seckill_reservation_script_seconds_bucket{le="0.0025"} 1`,
		"seckill_order_written_total 1", "seckill_stream_dead_letters_total 1",
		`seckill_server_requests_total{route="/graphql",status="200"} 1`, "seckill_reservation_queue_count 9",
		"seckill_telemetry_build_info{", "go_goroutines",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing", line)
		}
	}
}

func TestAMetricMadeTwiceIsOneMetric(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	NewOrderMetrics(r).Written.Inc()
	NewOrderMetrics(r).Written.Inc()
	if !strings.Contains(show(r), "seckill_order_written_total 2") {
		t.Error("the second is another one")
	}
}

func TestNopMetricsGoNowhere(t *testing.T) {
	t.Parallel()
	r := Nop()
	NewReservationMetrics(r).Attempts.With("accepted").Inc()
	NewOrderMetrics(r).Write.Observe(1)
	NewStreamMetrics(r).Unread.With("x").Set(1)
	NewServerMetrics(r).Seconds.With("/").Observe(1)
	r.GaugeFunc(Desc{}, nil)
	if got := show(r); !strings.Contains(got, "404") {
		t.Errorf("shown: %s", got)
	}
}

func TestAMisnamedMetricIsABug(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a metric without a unit was taken")
		}
	}()
	NewRegistry().Counter(Desc{Package: "order", Name: "things", Help: "x"})
}

func TestTheLinkerWinsOverTheBuildInfo(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-11-20T12:00:00Z"},
		{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"},
	}}
	if b := buildOf(info, "", ""); b.Version != "devel" || b.Commit != "abc" || !b.Modified || b.Time.IsZero() || b.Platform != "linux/amd64" {
		t.Errorf("from build info: %+v", b)
	}
	if b := buildOf(info, "v1.2.3", "def"); b.Version != "1.2.3" || b.Commit != "def" || b.Modified {
		t.Errorf("from the linker: %+v", b)
	}
	if b := buildOf(&debug.BuildInfo{}, "", ""); b.Commit != "unknown" {
		t.Errorf("from nothing: %+v", b)
	}
}
