//go:build ship

package deploy

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

// prometheus is a real Prometheus server that scrapes a shop.
type prometheus struct {
	t   testing.TB
	url string
}

// get decodes a response of its API into data.
func (p *prometheus) get(path string, data any) error {
	p.t.Helper()
	response, err := http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(&struct {
		Data any `json:"data"`
	}{data})
}

// series evaluates a query and returns the number of series, or an error text.
func (p *prometheus) series(query string) (count int, problem string) {
	p.t.Helper()
	response, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, err.Error()
	}
	return len(answer.Data.Result), answer.Error
}

// startPrometheus starts Prometheus with the shipped configuration and rules.
func startPrometheus(t *testing.T, s *shop) *prometheus {
	t.Helper()
	dir := t.TempDir()
	configured(t, "prometheus/alerts.yaml", dir)
	config := configured(t, "prometheus/prometheus.yml", dir, "seckill:9090", s.admin, "scrape_interval: 5s", "scrape_interval: 1s",
		"evaluation_interval: 15s", "evaluation_interval: 1s")
	address := startProgram(t, func(address string) *exec.Cmd {
		return exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	}, func(address string) bool {
		response, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return &prometheus{t: t, url: "http://" + address}
}

func TestDashboardAndAlertsHaveData(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	p := startPrometheus(t, s)
	c := &client{shop: s, url: "http://" + s.public, http: http.DefaultClient}
	testenv.Eventually(t, testenv.Wait, func() bool { n, _ := p.series(`count_over_time(up{job="seckill"}[1h]) > 1`); return n > 0 }, "Prometheus scrapes")
	c.followSocket(c.reserve())
	testenv.Eventually(t, testenv.Wait, func() bool { n, _ := p.series(`sum(increase(seckill_order_written_total[1m])) > 0`); return n > 0 }, "Prometheus sees the order")

	t.Run("dashboard", func(t *testing.T) {
		var dashboard struct {
			Templating struct{ List []struct{ Name string } }
			Panels     []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		raw, err := os.ReadFile(filepath.Join(deployment, "grafana/dashboard.json"))
		if err == nil {
			err = json.Unmarshal(raw, &dashboard)
		}
		if err != nil {
			t.Fatal(err)
		}
		queries := 0
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				queries++
				for _, name := range variable.FindAllString(target.Expr, -1) {
					if !slices.ContainsFunc(dashboard.Templating.List, func(v struct{ Name string }) bool { return "$"+v.Name == name }) {
						t.Errorf("panel %q: the dashboard has no variable %s", panel.Title, name)
					}
				}
				// as Grafana does for "All"
				query := variable.ReplaceAllString(target.Expr, ".*")
				// A rate needs two samples of a series that starts with the purchase.
				testenv.Eventually(t, testenv.Wait, func() bool {
					n, problem := p.series(query)
					if problem != "" {
						t.Fatalf("panel %q: %s: %s", panel.Title, query, problem)
					}
					return n > 0
				}, "panel "+panel.Title+" has data: "+query)
			}
		}
		if queries < 20 {
			t.Errorf("found %d queries", queries)
		}
	})
	t.Run("alerts", func(t *testing.T) { p.checkAlerts(t) })
	exposition, err := http.Get("http://" + s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer exposition.Body.Close()
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = exposition.Body
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

var (
	// selector matches a metric with the labels that a rule selects.
	selector = regexp.MustCompile(`\b(?:seckill_[a-z_]+|process_[a-z_]+|up\b)(?:\{[^}]*\})?`)
	failures = regexp.MustCompile(`(?:status=~"5\.\."|code=~"[A-Z|]+"),?`)
	anchor   = regexp.MustCompile(`^\{\{ or \$externalLabels\.seckill_docs "docs" \}\}/runbooks\.md#([a-z]+)$`)
	// variable matches a variable of the dashboard.
	variable = regexp.MustCompile(`\$\w+`)
)

// checkAlerts checks that each rule evaluates without an error, selects existing series,
// does not fire on a healthy shop, and has a runbook.
func (p *prometheus) checkAlerts(t *testing.T) {
	t.Helper()
	runbooks, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Groups []struct {
			Rules []struct {
				Name, Query, Health, LastError, State string
				Annotations                           map[string]string
			}
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		if err := p.get("/api/v1/rules", &found); err != nil || len(found.Groups) == 0 {
			return false
		}
		for _, rule := range found.Groups[0].Rules {
			if rule.Health == "unknown" {
				return false
			}
		}
		return true
	}, "all rules are evaluated")
	for _, rule := range found.Groups[0].Rules {
		if rule.Health != "ok" || rule.State == "firing" {
			t.Errorf("%s: health %s, state %s: %s", rule.Name, rule.Health, rule.State, rule.LastError)
		}
		for _, metric := range selector.FindAllString(rule.Query, -1) {
			metric = failures.ReplaceAllString(metric, "") // a healthy shop has no series of failures
			if n, problem := p.series(metric); n == 0 {
				t.Errorf("%s: no series %s %s", rule.Name, metric, problem)
			}
		}
		runbook := anchor.FindStringSubmatch(rule.Annotations["runbook_url"])
		if runbook == nil || runbook[1] != strings.ToLower(rule.Name) || !strings.Contains(string(runbooks), "\n## "+rule.Name+"\n") {
			t.Errorf("%s has no runbook at %q", rule.Name, rule.Annotations["runbook_url"])
		}
	}
}

// A rule that fires names its runbook: as a link when the setting says where the pages are.
func TestRunbooksAreLinksBySetting(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs(filepath.Join(deployment, "prometheus/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for labels, docs := range map[string]string{
		"{}": "docs", `{seckill_docs: "https://git.example.com/docs"}`: "https://git.example.com/docs",
	} {
		file := filepath.Join(t.TempDir(), "test.yaml")
		text := `{rule_files: [` + rules + `], evaluation_interval: 15s, tests: [{interval: 15s, external_labels: ` + labels + `,
  input_series: [{series: 'up{job="seckill", instance="a:9090"}', values: 0x8}],
  alert_rule_test: [{eval_time: 1m, alertname: SeckillDown, exp_alerts: [{exp_labels: {severity: page, job: seckill, instance: "a:9090"},
    exp_annotations: {summary: "a:9090 does not answer on its admin listener.", runbook_url: "` + docs + `/runbooks.md#seckilldown"}}]}]}]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "promtool", "test", "rules", file)
	}
}
