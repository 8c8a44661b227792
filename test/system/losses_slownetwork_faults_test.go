//go:build faults

package system_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

const (
	// slowFor is how long a network is slow.
	slowFor = 8 * time.Second
	// slowAnswer bounds the answer to a call meanwhile: three times the timeout of a request, after which the
	// server closes the connection.
	slowAnswer = 3 * config.DefaultRequestTimeout
)

// slowNetworks forward something, but late, or not to the end.
var slowNetworks = []struct {
	name  string
	begin func(*testenv.Proxy)
}{
	{"one byte a second", (*testenv.Proxy).Trickle},
	{"two seconds of delay", func(p *testenv.Proxy) { p.Delay(2 * time.Second) }},
	{"half-open connections", (*testenv.Proxy).HalfOpen},
}

// slowPlaces start the processes of a site with a proxy between two of its parts.
var slowPlaces = map[string]func(s *site) (*testenv.Proxy, []*process){
	"Redis": func(s *site) (*testenv.Proxy, []*process) {
		proxy := testenv.NewProxy(s.t, testenv.RedisAddr(s.t))
		// dial_timeout as in production, on a busy machine
		return proxy, s.launchAll("SECKILL_REDIS_URL=redis://" + proxy.Addr() + "/0?dial_timeout=5s")
	},
	"Postgres": func(s *site) (*testenv.Proxy, []*process) {
		proxy, behind := s.databaseThroughProxy()
		return proxy, s.launchAll(behind)
	},
	"buyers": func(s *site) (*testenv.Proxy, []*process) {
		all := s.launchAll()
		proxy := testenv.NewProxy(s.t, all[0].public)
		s.url = "http://" + proxy.Addr()
		return proxy, all
	},
}

// launchAll starts a process of each role, with the timeouts of production.
func (s *site) launchAll(more ...string) []*process {
	more = append(more, "SECKILL_REQUEST_TIMEOUT="+config.DefaultRequestTimeout.String())
	return []*process{s.launch("api", more...), s.launch("worker", more...), s.launch("scheduler", more...)}
}

// A network that is slow, instead of dead, holds calls up: each has an answer in bounded time, which says that the
// buyer should try again, or that the unit is taken. Afterwards all is ready again, and nothing is lost.
func TestASlowNetworkDelaysBuyersAndLosesNothing(t *testing.T) {
	t.Parallel()
	for place, launch := range slowPlaces {
		for _, network := range slowNetworks {
			t.Run(place+", "+network.name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, func(c *config.Config) { c.DatabaseURL = config.Secret(testdb.ShortPostgresURL(t)) })
				proxy, processes := launch(s)
				slow := &slowSale{site: s}
				if place == "buyers" {
					slow.direct = "http://" + processes[0].public
					s.http.Timeout = config.DefaultRequestTimeout // a call on a half-open connection ends only by this
				}
				slow.start()
				slow.during(func() { network.begin(proxy) })
				proxy.Restore()
				slow.end("network to "+place+": "+network.name, processes)
			})
		}
	}
}

// slowSale is a sale in which calls are slow for a time.
type slowSale struct {
	*site
	direct string // address past the slow network, where that is the buyers' own; calls may then have no answer
	made   *seed.Result
	in     []map[string]any // what each buyer asks for, always with the same key
	of     []ofBuyer        // since the first call of each
	mu     sync.Mutex
	placed map[int]bool // buyers that have a unit; guarded by mu
}

const (
	slowStock, slowBuyers = 40, 44
	slowFirst             = 4  // buyers before the network is slow
	slowCallers           = 4  // meanwhile, at the same time
	slowLast              = 24 // the first buyer afterwards
)

func (s *slowSale) start() {
	s.made = s.seed(seed.Input{Users: slowBuyers, Stock: slowStock, PathTTL: 10 * time.Minute})
	s.placed = map[int]bool{}
	for i, u := range s.made.Users {
		s.in, s.of = append(s.in, order(s.made.ItemID, u.Path)), append(s.of, ofBuyer{buyer: i, token: u.AccessToken})
	}
	for i := range slowFirst {
		s.insists(i)
	}
	s.drained(s.made.SaleID, slowFirst)
}

// insists repeats the call of a buyer until its outcome is known.
func (s *slowSale) insists(buyer int) {
	of := s.begun(buyer)
	p, err := s.insist(of.token, s.in[buyer])
	s.seen.placed(of, p, err)
	switch {
	case err == nil && p.why() == "":
		s.took(buyer)
	case err != nil || p.why() != "SOLD_OUT":
		s.t.Errorf("buyer %d: %v %s", buyer, err, p.why())
	}
}

// begun returns a buyer who calls now, or has called before. A buyer makes one call at a time.
func (s *slowSale) begun(buyer int) ofBuyer {
	if of := &s.of[buyer]; of.began.IsZero() {
		of.began = time.Now()
	}
	return s.of[buyer]
}

func (s *slowSale) took(buyer int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.placed[buyer] = true
}

// during lets buyers call while the network is slow. Those without a definite answer call again afterwards.
func (s *slowSale) during(begin func()) {
	ctx, cancel := context.WithTimeout(s.t.Context(), slowFor)
	defer cancel()
	begin()
	var all sync.WaitGroup
	var mu sync.Mutex
	var calls, answered int
	var slowest time.Duration
	next := slowFirst
	for range slowCallers {
		all.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				buyer := next
				next++
				mu.Unlock()
				if buyer >= slowLast {
					return
				}
				began := time.Now()
				known := s.calls(buyer)
				longest := max(time.Since(began), s.reads(buyer))
				mu.Lock()
				calls++
				if known {
					answered++
				}
				slowest = max(slowest, longest)
				mu.Unlock()
			}
		})
	}
	if s.direct != "" {
		other := *s.site
		other.url = s.direct
		began := time.Now()
		out := other.ask("", `query($i: ID!) { sale(by: {id: $i}) { phase } }`, map[string]any{"i": s.made.SaleID})
		if took := time.Since(began); string(out.Data) != `{"sale":{"phase":"LIVE"}}` || took > slowAnswer {
			s.t.Errorf("another buyer sees %s %+v after %s", out.Data, out.Errors, took)
		}
	}
	all.Wait()
	<-ctx.Done()
	s.t.Logf("%d calls, %d with a unit, the longest took %s", calls, answered, slowest.Round(time.Millisecond))
	if calls == 0 || slowest > slowAnswer {
		s.t.Errorf("%d calls, the longest took %s, want at most %s", calls, slowest, slowAnswer)
	}
}

// calls makes one call of a buyer, and reports whether it has a unit now.
func (s *slowSale) calls(buyer int) bool {
	of := s.begun(buyer)
	out, err := s.try(of.token, placeOrder, map[string]any{"in": s.in[buyer]})
	if err != nil {
		if s.direct == "" {
			s.t.Errorf("buyer %d has no answer: %v", buyer, err)
		}
		return false
	}
	if slices.Contains(tryAgain, out.code()) {
		return false
	}
	p, err := out.placed()
	s.seen.placed(of, p, err)
	if err != nil || p.why() != "" {
		s.t.Errorf("buyer %d: %v %s", buyer, err, p.why())
		return false
	}
	s.took(buyer)
	return true
}

// tryAgain are the codes of calls that may succeed later.
var tryAgain = []string{"TIMEOUT", "OVERLOADED", "UNAVAILABLE"}

// reads reads a buyer's orders, and returns how long that took.
func (s *slowSale) reads(buyer int) time.Duration {
	began := time.Now()
	out, err := s.try(s.of[buyer].token, `{ myOrders(first: 1) { edges { node { id } } } }`, nil)
	if err != nil && s.direct == "" || err == nil && out.code() != "" && !slices.Contains(tryAgain, out.code()) {
		s.t.Errorf("buyer %d reads %s %+v %v", buyer, out.Data, out.Errors, err)
	}
	return time.Since(began)
}

// end lets the rest of the buyers buy, and compares what they saw with the stores.
func (s *slowSale) end(fault string, processes []*process) {
	s.t.Helper()
	restored := time.Now()
	for _, p := range processes {
		testenv.Eventually(s.t, testenv.Wait, p.ready, "the process is ready again")
	}
	s.insists(slowLast)
	recovery := time.Since(restored)
	for i := slowFirst; i < slowBuyers; i++ {
		if !s.placed[i] {
			s.insists(i)
		}
	}
	report := s.drained(s.made.SaleID, slowStock)
	if len(s.placed) != slowStock || report.Postgres.Orders != slowStock {
		s.t.Errorf("%d accepted, %+v", len(s.placed), report.Postgres)
	}
	s.oneOrder(s.seen, slowStock, 2*slowStock)
	testenv.RecordFault(s.t, testenv.FaultRow{
		Fault: fault, Accepted: len(s.placed), Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// ready reports whether the process says that it is ready.
func (p *process) ready() bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Wait}
	out, err := client.Get("http://" + p.admin + "/readyz") //nolint:noctx // the client has a timeout
	if err != nil {
		return false
	}
	_ = out.Body.Close()
	return out.StatusCode == http.StatusOK
}
