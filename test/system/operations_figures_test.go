package system_test

import (
	"bytes"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/staff/report"
	"seckill/internal/testenv"
	"seckill/web"
)

// figures is the answer of saleStats.
type figures struct {
	Captchas, Paths, Requests, Accepted, Replayed, Faults, Orders, TotalUnits, RemainingUnits, PendingUnits, PaidUnits, InFlightUnits, QueueDepth int
	Conserved                                                                                                                                     bool
	Rejections                                                                                                                                    []struct {
		Code  string
		Count int
	}
	RecentOrders []int
	Series       []struct{ Requests, Orders int }
	Gate         []struct {
		Stage         string
		Calls, Passed int
		Rejections    []struct {
			Code  string
			Count int
		}
	}
}

// series returns the totals of the per-second series.
func (f figures) series() (requests, orders int) {
	for _, p := range f.Series {
		requests, orders = requests+p.Requests, orders+p.Orders
	}
	return requests, orders
}

const figureParts = `captchas paths requests accepted replayed faults orders totalUnits remainingUnits pendingUnits paidUnits inFlightUnits queueDepth
  conserved rejections { code count } recentOrders series { requests orders } gate { stage calls passed rejections { code count } }`

func (s *site) figures(token, saleID string) figures {
	s.t.Helper()
	var data struct{ Sale struct{ SaleStats figures } }
	out := s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { saleStats { `+figureParts+` } } }`, map[string]any{"id": saleID})
	if out.code() != "" {
		s.t.Fatalf("figures: %+v", out.Errors)
	}
	out.into(s.t, &data)
	return data.Sale.SaleStats
}

// Two API processes, load on both: the figures are the sum of what the clients saw.
func TestFiguresOfTwoProcessesAreTheSumOfWhatTheClientsSaw(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("worker", "scheduler")
	s.start("api")
	first := s.url
	s.start("api")
	admin := s.staff("carla@example.com", "ADMIN")
	const stock, buyers = 40, 120
	made := s.seed(seed.Input{Users: buyers, Stock: stock, PermitRatio: 2 * buyers / stock})
	second := *s
	second.url = first
	second.awaitSale(made.SaleID) // an attempt before the process has loaded the item is counted for no sale
	at := func(buyer int) *site {
		if buyer%2 == 0 {
			return &second
		}
		return s
	}
	var admitting sync.WaitGroup
	for i := range made.Users {
		admitting.Go(func() {
			u, here := &made.Users[i], at(i)
			challenge, right := here.captcha(u.AccessToken, made.SaleID)
			if _, why := here.path(u.AccessToken, made.ItemID, challenge, "wrong"); why != "CAPTCHA_INVALID" {
				t.Errorf("a wrong answer: %q", why)
			}
			var why string
			if u.Path, why = here.path(u.AccessToken, made.ItemID, challenge, right); why != "" {
				t.Errorf("no path: %s", why)
			}
		})
	}
	admitting.Wait()
	var mu sync.Mutex
	seen := map[string]int{}
	requests := 0
	press := func(at *site, u seed.LoadUser, in map[string]any) {
		p, err := at.place(u.AccessToken, in)
		mu.Lock()
		defer mu.Unlock()
		requests++
		switch {
		case err != nil:
			t.Error(err)
		case p.why() != "":
			seen[p.why()]++
		case p.Replayed:
			seen["replayed"]++
		default:
			seen["accepted"]++
		}
	}
	var wg sync.WaitGroup
	for i, u := range made.Users {
		wg.Go(func() {
			in := order(made.ItemID, u.Path)
			press(at(i), u, in)
			press(at(i), u, in)                                  // a double click
			press(at(i), u, order(made.ItemID, "a wrong token")) // another attempt
		})
	}
	wg.Wait()
	s.drained(made.SaleID, stock)
	var got figures
	defer func() {
		if t.Failed() {
			asked, written := got.series()
			t.Logf("%d presses, seen %v; %d counted, in the series %d and %d orders; %v", requests, seen, got.Requests, asked, written, got.Rejections)
		}
	}()
	// The series ends with the last complete second; later counts follow with the next
	// one.
	testenv.Eventually(t, testenv.Wait, func() bool {
		got = s.figures(admin, made.SaleID)
		asked, written := got.series()
		return got.Requests >= requests && asked >= requests && written >= stock
	}, "all figures arrive")
	recent := 0
	for _, n := range got.RecentOrders {
		recent += n
	}
	if recent != stock || len(got.RecentOrders) != 30 {
		t.Errorf("recent orders %v, want %d in 30 parts", got.RecentOrders, stock)
	}
	if got.Captchas != 2*buyers || got.Paths != buyers { // a wrong answer comes with the next captcha
		t.Errorf("%d captchas and %d paths; each of %d buyers was given two and one", got.Captchas, got.Paths, buyers)
	}
	for _, g := range got.Gate {
		if want := map[string]int{"CAPTCHA": buyers, "PATH": 2 * buyers, "ORDER": requests}[g.Stage]; g.Calls != want {
			t.Errorf("%s: %d calls counted, %d made", g.Stage, g.Calls, want)
		}
		if g.Stage == "PATH" && (g.Passed != buyers || len(g.Rejections) != 1 || g.Rejections[0].Code != "CAPTCHA_INVALID" || g.Rejections[0].Count != buyers) {
			t.Errorf("calls for a path: %+v", g)
		}
	}
	counted := map[string]int{"accepted": got.Accepted}
	if got.Replayed > 0 {
		counted["replayed"] = got.Replayed
	}
	for _, r := range got.Rejections {
		counted[r.Code] = r.Count
	}
	for code, n := range seen {
		if counted[code] != n {
			t.Errorf("%s: %d counted, %d seen", code, counted[code], n)
		}
	}
	if got.Accepted != stock || got.Orders != stock || got.TotalUnits != stock || got.RemainingUnits+got.PendingUnits+got.PaidUnits != stock ||
		got.InFlightUnits != 0 || !got.Conserved || len(got.Series) != 300 || got.QueueDepth != 0 {
		t.Errorf("figures %+v", got)
	}
	if asked, written := got.series(); got.Requests != requests || asked != requests || written != stock {
		t.Errorf("%d requests, in the series %d and %d orders; %d and %d were seen", got.Requests, asked, written, requests, stock)
	}
	var totals struct {
		Sale struct{ Now, Before struct{ Orders int } }
	}
	s.ask(admin, `query($id: ID!, $now: DateTime!) { sale(by: {id: $id}) { before: orderTotals(since: "2026-01-01T00:00:00Z") { orders } now: orderTotals(since: $now) { orders } } }`,
		map[string]any{"id": made.SaleID, "now": time.Now().Add(time.Minute)}).into(t, &totals)
	if totals.Sale.Before.Orders != stock || totals.Sale.Now.Orders != 0 {
		t.Errorf("order totals %+v, want %d and none", totals, stock)
	}
	s.report(admin, made.SaleID, stock)
}

// report checks the report and the export of a sold-out sale.
func (s *site) report(token, saleID string, orders int) {
	s.t.Helper()
	var data struct {
		SaleReport struct {
			Conserved  bool
			Findings   []string
			HTML, JSON string
		}
	}
	const ask = `query($id: ID!, $to: ID, $zone: String) { saleReport(saleId: $id, compareTo: $to) { conserved findings html(timeZone: $zone) json } }`
	s.ask(token, ask, map[string]any{"id": saleID, "to": saleID, "zone": "Asia/Shanghai"}).into(s.t, &data)
	r := data.SaleReport
	if !r.Conserved || !strings.Contains(r.HTML, "<svg") || !strings.Contains(r.HTML, "Times are those of Asia/Shanghai") ||
		!strings.Contains(r.HTML, "Compared with an earlier sale") {
		s.t.Errorf("report: %v %q, %d bytes of HTML", r.Conserved, r.Findings, len(r.HTML))
	}
	for _, wrong := range []map[string]any{{"id": saleID, "zone": "Mars/Olympus"}, {"id": saleID, "to": "sal_01jd0000000000000000000000"}, {"id": saleID, "to": "x"}} {
		if code := s.ask(token, ask, wrong).code(); code != "BAD_USER_INPUT" {
			s.t.Errorf("%v: %s", wrong, code)
		}
	}
	s.agrees(token, saleID, r.JSON, orders)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/exports/orders.csv?sale="+url.QueryEscape(saleID), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || res.StatusCode != http.StatusOK || len(rows) != orders+1 {
		s.t.Errorf("export: %d, %d rows, error %v", res.StatusCode, len(rows), err)
	}
}

// agrees checks that the report, the live figures and the audit have the same figures.
func (s *site) agrees(token, saleID, text string, orders int) {
	s.t.Helper()
	var r report.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		s.t.Fatal(err)
	}
	live, checked := s.figures(token, saleID), s.look(saleID)
	if r.Requests.Total != int64(live.Requests) || r.Summary.Accepted != int64(live.Accepted) || r.Orders.Written != live.Orders ||
		r.Units.Total != live.TotalUnits || r.Units.Remaining != live.RemainingUnits || r.Units.Sold != live.PaidUnits || r.Summary.Buyers != orders {
		s.t.Errorf("report %+v %+v, live figures %+v", r.Summary, r.Units, live)
	}
	if p := checked.Postgres; p.Total != r.Units.Total || p.Available != r.Units.Remaining || p.Held != r.Units.Held || p.Sold != r.Units.Sold || p.Orders != r.Orders.Written {
		s.t.Errorf("report %+v, audit %+v", r.Units, p)
	}
}

// lastQuery returns when the site's database was queried last, other than by the loop
// that reads ended sessions every few seconds.
func lastQuery(t *testing.T, db *sql.DB, name string) (last sql.NullTime) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT max(query_start) FROM pg_stat_activity
		WHERE datname = $1 AND query NOT LIKE '%"revoked_at" >= %' AND query NOT LIKE '%"disabled_at" >= %'
		AND query <> 'SELECT clock_timestamp()'`, name).Scan(&last)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

func TestBrowsingDoesNotReachTheDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start("worker", "scheduler")
	s.start("api")
	made := s.seed(seed.Input{Users: 1, Stock: 10})
	stop() // its loops query the database all the time
	address, err := url.Parse(s.cfg.DatabaseURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	address.Path = "/postgres"
	watcher, err := sql.Open("postgres", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close() })
	const browse = `query($id: ID!) { sales(first: 20) { edges { node { id title phase items { stock { remaining } goods { name } } } } }
	  goods(first: 20) { edges { node { name } } } sale(by: {id: $id}) { title } gone: sale(by: {id: "sal_01jd0000000000000000000000"}) { id } }`
	in := map[string]any{"id": made.SaleID}
	const browseTries = 3 // on a busy machine, one of the checks that come every 30 s may fall among the queries
	for try := 1; try <= browseTries; try++ {
		// Changes by the seeding and by the last loop iterations are read once.
		testenv.Eventually(t, testenv.Wait, func() bool {
			s.ask("", browse, in)
			last := lastQuery(t, watcher, name)
			// Postgres runs on this machine and uses the same clock.
			return !last.Valid || time.Since(last.Time) > 2*time.Second
		}, "the catalogue is read")
		began := time.Now()
		before := lastQuery(t, watcher, name)
		var wg sync.WaitGroup
		for range 8 { // a test in package sale with a fake clock shows the same for many more reads
			wg.Go(func() {
				for range 100 {
					if time.Since(began) > 20*time.Second {
						return // every 30 s a process checks for rows written by hand
					}
					if out, err := s.try("", browse, in); err != nil || out.code() != "" || !bytes.Contains(out.Data, []byte("Kettle")) && !bytes.Contains(out.Data, []byte(`"title"`)) {
						t.Errorf("%s %+v %v", out.Data, out.Errors, err)
						return
					}
				}
			})
		}
		wg.Wait()
		after := lastQuery(t, watcher, name)
		if !after.Valid || !after.Time.After(before.Time) {
			break
		}
		if try == browseTries {
			t.Errorf("the database was asked at %v, last before at %v", after.Time, before.Time)
		}
	}
	s.unchanged("Sales")
}

// unchanged sends a GET for a document of the shop, as browsers and CDNs do. A client
// with the current answer gets 304 as long as nothing changes. One second covers several
// refreshes of the StockCache.
func (s *site) unchanged(operation string) {
	s.t.Helper()
	documents, err := web.Documents()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, document := range documents {
		if !strings.HasPrefix(document, "query "+operation+"(") && !strings.HasPrefix(document, "query "+operation+"{") {
			continue
		}
		ask := func(tag string) *http.Response {
			req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/graphql?"+url.Values{"query": {document}}.Encode(), nil)
			if err != nil {
				s.t.Fatal(err)
			}
			req.Header.Set("If-None-Match", tag)
			res, err := s.http.Do(req)
			if err != nil {
				s.t.Fatal(err)
			}
			_ = res.Body.Close()
			return res
		}
		first := ask("")
		for began := time.Now(); time.Since(began) < time.Second; {
			if again := ask(first.Header.Get("ETag")); first.StatusCode != http.StatusOK || again.StatusCode != http.StatusNotModified {
				s.t.Fatalf("%s is answered %d, then %d after %s", operation, first.StatusCode, again.StatusCode, time.Since(began))
			}
		}
		return
	}
	s.t.Errorf("the shop has no document %s", operation)
}
