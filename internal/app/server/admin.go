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

	"seckill/internal/platform/clock"
)

const (
	// checkTimeout is the timeout of one readiness check.
	checkTimeout = time.Second
	// maxAway is how long after its last successful check a dependency may be away before
	// the process is not ready: a failover of Redis or Postgres is over by then, and would
	// otherwise take all processes out of the balancer at once. It is longer than the
	// usual 10 s between two requests of a balancer.
	maxAway = 15 * time.Second
)

// Check tests whether a dependency of the process is available. Calls may overlap.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// NewReadiness returns a Readiness with the given checks.
func NewReadiness(c clock.Clock, checks ...Check) *Readiness {
	return &Readiness{clock: c, checks: checks, passed: make([]time.Time, len(checks))}
}

// finding is the outcome of one check.
type finding struct {
	Name      string `json:"name"`
	OK        bool   `json:"ok"`
	Reason    string `json:"reason,omitempty"`
	Tolerated bool   `json:"tolerated,omitempty"` // it failed, and passed at most maxAway ago
}

// Draining reports whether the server is stopping.
func (r *Readiness) Draining() bool { return r.draining.Load() }

// run runs one check. A check that never passed is not tolerated.
func (r *Readiness) run(ctx context.Context, i int) finding {
	asked := r.clock.Now()
	err := r.checks[i].Run(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.passed[i] = asked
		return finding{Name: r.checks[i].Name, OK: true}
	}
	last := r.passed[i]
	return finding{Name: r.checks[i].Name, Reason: err.Error(), Tolerated: !last.IsZero() && asked.Sub(last) <= maxAway}
}

// ask runs all checks concurrently.
func (r *Readiness) ask(ctx context.Context) (ready bool, findings []finding) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	findings = make([]finding, len(r.checks), len(r.checks)+1)
	var wg sync.WaitGroup
	for i := range r.checks {
		wg.Go(func() { findings[i] = r.run(ctx, i) })
	}
	wg.Wait()
	if r.Draining() {
		findings = append(findings, finding{Name: "server", Reason: "draining"})
	}
	for _, f := range findings {
		if !f.OK && !f.Tolerated {
			return false, findings
		}
	}
	return true, findings
}

// ServeHTTP answers /readyz: 200 if all checks pass or are tolerated, else 503, with the
// reasons.
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
			http.Error(w, "Use the address of this listener, or a name without a dot or of a private zone.",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// NewAdmin returns the handler of the admin listener. metrics may be nil, and drill is nil
// except in the demo.
func NewAdmin(ready *Readiness, metrics, drill http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /readyz", ready)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	if drill != nil {
		mux.Handle("/drill", drill)
		mux.Handle("/drill/", drill)
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return onlyPrivateHosts(mux)
}
