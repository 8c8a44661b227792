package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"seckill/internal/platform/fault"
)

func TestCaughtPanicsAreShownByPlace(t *testing.T) {
	t.Parallel()
	page := func() string {
		rec := httptest.NewRecorder()
		MetricsHandler(NewRegistry()).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return rec.Body.String()
	}
	for _, place := range fault.Places() {
		if line := fmt.Sprintf("seckill_fault_panics_total{place=%q} 0\n", place); !strings.Contains(page(), line) {
			t.Errorf("before a panic: no %s", line)
		}
	}
	func() {
		defer func() { fault.Caught(recover(), fault.InLoop) }()
		panic("bug")
	}()
	func() {
		defer func() { fault.Caught(recover(), fault.InBatch) }()
	}()
	if text := page(); !strings.Contains(text, `seckill_fault_panics_total{place="loop"} 1`) || !strings.Contains(text, `seckill_fault_panics_total{place="batch"} 0`) {
		t.Errorf("after a panic in a loop: %s", text)
	}
}
