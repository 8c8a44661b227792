package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

func TestLogLinesCarryTheRequestID(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, LogOptions{}).With(slog.String("part", "edge"))
	log.InfoContext(WithRequest(context.Background(), "req-12345678", ""), "hello", slog.Int("n", 1))
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

func TestTheLineOfAnOperationHasItsTraceAndNoUserID(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx := WithRequest(context.Background(), "req-12345678", TraceID("00-"+trace+"-00f067aa0ba902b7-01"))
	op := OperationFrom(ctx)
	if op.Attrs() != nil {
		t.Error("a request outside of GraphQL has an operation")
	}
	op.Field, op.Name, op.User = "placeOrder", "Buy", id.User(uuid.MustParse("01980a4e-7d2b-7c1a-9f00-1234567890ab"))
	op.Fail("SOLD_OUT")
	op.Fail("INTERNAL")
	NewLogger(&out, LogOptions{}).LogAttrs(ctx, slog.LevelInfo, "request", op.Attrs()...)
	line := out.String()
	for _, part := range []string{`"operation":"placeOrder","name":"Buy","code":"SOLD_OUT","user":"`, `"trace_id":"` + trace + `"`} {
		if !strings.Contains(line, part) {
			t.Errorf("%s has no %s", line, part)
		}
	}
	if strings.Contains(line, op.User.String()) {
		t.Errorf("the id of the user is in %s", line)
	}
	for _, header := range []string{"", "00-" + trace, "01-" + trace + "-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"} {
		if got := TraceID(header); got != "" {
			t.Errorf("the trace of %q is %q", header, got)
		}
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
	if requestID(context.Background()) != "" {
		t.Error("an empty context has a request id")
	}
}

func TestMetricsShowTheBuildAndTheRuntime(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	MetricsHandler(NewRegistry()).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, name := range []string{"seckill_telemetry_build_info{", "go_goroutines", "process_"} {
		if !strings.Contains(rec.Body.String(), name) {
			t.Errorf("%q is missing", name)
		}
	}
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
