package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// checkTimeout is the timeout of one readiness check.
const checkTimeout = time.Second

// Check tests whether a dependency of the process is available.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// NewReadiness returns a Readiness with the given checks.
func NewReadiness(checks ...Check) *Readiness { return &Readiness{checks: checks} }

// finding is the outcome of one check.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// Draining reports whether the server is stopping.
func (r *Readiness) Draining() bool { return r.draining.Load() }

// ask runs all checks concurrently.
func (r *Readiness) ask(ctx context.Context) (ready bool, findings []finding) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	findings = make([]finding, len(r.checks), len(r.checks)+1)
	var wg sync.WaitGroup
	for i, c := range r.checks {
		wg.Go(func() {
			findings[i] = finding{Name: c.Name, OK: true}
			if err := c.Run(ctx); err != nil {
				findings[i] = finding{Name: c.Name, Reason: err.Error()}
			}
		})
	}
	wg.Wait()
	if r.Draining() {
		findings = append(findings, finding{Name: "server", Reason: "draining"})
	}
	for _, f := range findings {
		if !f.OK {
			return false, findings
		}
	}
	return true, findings
}

// ServeHTTP answers /readyz: 200 if all checks pass, else 503, with the reasons.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ready, findings := r.ask(req.Context())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ready": ready, "checks": findings}) // the client may have disconnected
}

// privateHost reports whether a Host header can be that of a private listener: an
// address, a name without a dot, or a name of a private zone. A web page whose name
// resolves to this listener (DNS rebinding) sends its own name.
func privateHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	for _, zone := range []string{".localhost", ".local", ".internal", ".svc"} {
		if strings.HasSuffix(host, zone) {
			return true
		}
	}
	return false
}

// onlyPrivateHosts answers 421 to requests for other hosts.
func onlyPrivateHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !privateHost(r.Host) {
			http.Error(w, "Use the address of this listener, or a name without a dot or of a private zone.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// NewAdmin returns the handler of the admin listener. metrics may be nil.
func NewAdmin(ready *Readiness, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /readyz", ready)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return onlyPrivateHosts(mux)
}
