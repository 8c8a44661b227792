package risk_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"seckill/internal/buy/admission/risk"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// hook returns a hook to a service.
func hook(t *testing.T, closed bool, timeout time.Duration, service http.HandlerFunc) *risk.Hook {
	t.Helper()
	server := httptest.NewServer(service)
	h := risk.New(risk.Config{URL: server.URL, Timeout: timeout, FailClosed: closed})
	t.Cleanup(func() {
		h.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return h
}

func question() risk.Question {
	return risk.Question{Action: risk.IssuePath, User: id.New[id.User](), Sale: id.New[id.Sale](), Item: id.New[id.Item](), From: netip.MustParseAddr("93.184.216.34"), SinceOpening: -1500 * time.Millisecond}
}

func TestTheServiceDecidesAboutABuyer(t *testing.T) {
	t.Parallel()
	q := question()
	for reply, want := range map[string]time.Duration{ // 0 = allowed
		`{"allow":true}`:                                     0,
		`{"allow":false}`:                                    risk.DefaultRetry,
		`{"allow":false,"retryAfterMs":5000}`:                5 * time.Second,
		`{"allow":false,"retryAfterMs":-1}`:                  risk.DefaultRetry,
		`{"allow":false,"retryAfterMs":9223372036854775807}`: risk.DefaultRetry,
	} {
		var got map[string]any
		h := hook(t, true, testenv.Wait, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPost {
				t.Errorf("%s: %v", r.Method, err)
			}
			_, _ = io.WriteString(w, reply)
		})
		err := h.Ask(t.Context(), q)
		throttled, _ := errors.AsType[fault.Throttled](err)
		if (want == 0) != (err == nil) || throttled.RetryAfter != want {
			t.Errorf("%s: %v, retry after %s; want %s", reply, err, throttled.RetryAfter, want)
		}
		if got["action"] != "issuePath" || got["user"] != q.User.Public() || got["sale"] != q.Sale.Public() ||
			got["item"] != q.Item.Public() || got["address"] != "93.184.216.34" ||
			got["version"] != 1.0 || got["secondsFromOpening"] != -1.5 || len(got) != 7 {
			t.Errorf("the question is %v", got)
		}
	}
}

func TestAServiceThatDoesNotAnswerLetsPassOrRefusesAsSet(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	defer close(done)
	for name, service := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		},
		"failing":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"redirecting":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"other content": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"no decision":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
	} {
		if err := hook(t, false, 0, service).Ask(t.Context(), question()); err != nil {
			t.Errorf("%s, open: %v", name, err)
		}
		if err := hook(t, true, 0, service).Ask(t.Context(), question()); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s, closed: %v; want UNAVAILABLE", name, err)
		}
	}
	var none *risk.Hook
	if err := none.Ask(t.Context(), question()); err != nil {
		t.Errorf("without a service: %v", err)
	}
}
