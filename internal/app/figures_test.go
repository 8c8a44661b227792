package app_test

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

	"seckill/internal/seed"
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
	Series []struct{ Requests, Orders int }
}

// series returns the totals of the per-second series.
func (f figures) series() (requests, orders int) {
	for _, p := range f.Series {
		requests, orders = requests+p.Requests, orders+p.Orders
	}
	return requests, orders
}

const figureParts = `captchas paths requests accepted replayed faults orders totalUnits remainingUnits pendingUnits paidUnits inFlightUnits queueDepth
  conserved rejections { code count } series { requests orders }`

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
	made := s.seed(seed.Input{Users: buyers, Stock: stock, PathTTL: 10 * time.Minute})
	second := *s
	second.url = first
	second.awaitSale(made.SaleID) // an attempt before the process has loaded the item is counted for no sale
	challenge, right := s.captcha(made.Users[0].AccessToken, made.SaleID)
	made.Users[0].Path, _ = s.path(made.Users[0].AccessToken, made.ItemID, challenge, right)
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
		at := s
		if i%2 == 0 {
			at = &second
		}
		wg.Go(func() {
			in := order(made.ItemID, u.Path)
			press(at, u, in)
			press(at, u, in)                                  // a double click
			press(at, u, order(made.ItemID, "a wrong token")) // another attempt
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
	if got.Captchas != 1 || got.Paths != 1 {
		t.Errorf("%d captchas and %d paths; one of each was given", got.Captchas, got.Paths)
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
	s.ask(token, `query($id: ID!) { saleReport(saleId: $id) { conserved findings html json } }`, map[string]any{"id": saleID}).into(s.t, &data)
	r := data.SaleReport
	if !r.Conserved || !strings.Contains(r.HTML, "<svg") || !json.Valid([]byte(r.JSON)) {
		s.t.Errorf("report: %v %q, %d bytes of HTML", r.Conserved, r.Findings, len(r.HTML))
	}
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
	if after := lastQuery(t, watcher, name); after.Valid && after.Time.After(before.Time) {
		t.Errorf("the database was asked at %v, last before at %v", after.Time, before.Time)
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
