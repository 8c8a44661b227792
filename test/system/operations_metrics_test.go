package system_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// shownMetrics are the metrics that a process with all roles exposes after one paid
// order. Dashboards and alerts depend on their names and labels.
var shownMetrics = []string{
	`seckill_graphql_operation_seconds_count{code="OK",field="placeOrder"} 1`,
	`seckill_fault_panics_total{place="batch"}`, `seckill_fault_panics_total{place="request"}`,
	"seckill_notifier_followers ",
	`seckill_order_batch_size_bucket{le="1"}`,
	`seckill_order_faults_total{step="announce"}`, `seckill_order_faults_total{step="record"}`, `seckill_order_faults_total{step="transaction"}`,
	"seckill_order_released_total ",
	"seckill_order_write_seconds_count 1",
	"seckill_order_written_total 1",
	`seckill_payment_events_total{kind="SUCCEEDED",outcome="paid"} 1`,
	`seckill_payment_faults_total{step="close"}`, `seckill_payment_faults_total{step="create"}`,
	`seckill_payment_faults_total{step="query"}`, `seckill_payment_faults_total{step="refund"}`,
	`seckill_payment_results_total{provider="sandbox",result="paid"} 1`, `seckill_payment_call_seconds_count{outcome="ok",provider="sandbox",step="create"} 1`,
	`seckill_payment_declines_total{code="CARD_DECLINED",provider="sandbox"} 0`,
	`seckill_payment_report_lag_seconds_count{provider="sandbox"} 1`, `seckill_payment_provider_away{provider="sandbox"} 0`,
	`seckill_ratelimit_tries_total{outcome="passed",policy="`,
	"seckill_reconcile_findings_total ",
	`seckill_reconcile_repairs_total{how="rebuilt"}`, `seckill_reconcile_repairs_total{how="resent"}`,
	`seckill_reconcile_unfinished{what="dead_letters"}`, `seckill_reconcile_unfinished{what="unpaid_orders"}`,
	"seckill_reservation_ambiguous_total ",
	`seckill_reservation_attempts_total{outcome="accepted"} 1`,
	"seckill_reservation_batch_size_count 1",
	"seckill_reservation_script_seconds_count 1",
	`seckill_server_request_seconds_count{route="/graphql"}`,
	`seckill_server_requests_total{route="/graphql",status="200"}`,
	"seckill_server_sockets ",
	"seckill_stream_claimed_total ",
	"seckill_stream_dead_letters_total ",
	`seckill_stream_handle_seconds_count{handler="orders",outcome="ok"}`,
	`seckill_stream_handle_seconds_count{handler="payments",outcome="ok"} 1`,
	"seckill_stream_lost_groups_total ",
	`seckill_salestats_calls_total{outcome="passed",stage="ORDER"} 1`,
	`seckill_stream_messages_total{event="acked",stream="`, `seckill_stream_messages_total{event="read",stream="`,
	`seckill_stream_oldest_seconds{stream="`, `seckill_stream_pending_orders{stream="`, `seckill_stream_unread_orders{stream="`,
	"seckill_stream_silent_seconds ",
	"seckill_stream_trimmed_total ",
	`seckill_telemetry_build_info{`,
	`seckill_waitlist_places{status="offered"}`, `seckill_waitlist_places{status="waiting"}`,
	`seckill_waitlist_turns_total{what="joined"}`, `seckill_waitlist_turns_total{what="lapsed"}`,
}

// metrics returns the metrics page of the process's admin listener.
func metrics(t testing.TB, a *app.App) string {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+a.AdminAddr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Wait}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryMetricIsShownAfterOnePurchase(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits, c.Sandbox = config.SwitchOn, config.SandboxOn })
	a, _ := s.open("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: 10 * time.Minute})
	buyer := made.Users[0]
	s.login(buyer.Account, buyer.Password) // increments the rate limit metric
	if p, err := s.insist(buyer.AccessToken, order(made.ItemID, buyer.Path)); err != nil || p.OrderTask == nil {
		t.Fatalf("placed %+v, %v", p, err)
	}
	s.drained(made.SaleID, 1)
	var mine struct {
		MyOrders struct {
			Edges []struct{ Node struct{ ID string } }
		}
	}
	s.ask(buyer.AccessToken, `{ myOrders(first: 1) { edges { node { id } } } }`, nil).into(t, &mine)
	if len(mine.MyOrders.Edges) != 1 {
		t.Fatalf("orders %+v", mine)
	}
	var paid struct {
		PayOrder struct{ Payment *struct{ RedirectURL string } }
	}
	s.ask(buyer.AccessToken, `mutation($o: ID!) { payOrder(input: {orderId: $o, optionId: "sandbox", idempotencyKey: "metrics-test-0001"}) { payment { redirectUrl } } }`,
		map[string]any{"o": mine.MyOrders.Edges[0].Node.ID}).into(t, &paid)
	if paid.PayOrder.Payment == nil {
		t.Fatal("the payment was refused")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, paid.PayOrder.Payment.RedirectURL+"/approve", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	var missing []string
	defer func() {
		if t.Failed() {
			t.Logf("missing %q", missing)
		}
	}()
	testenv.Eventually(t, testenv.Wait, func() bool {
		text := metrics(t, a)
		missing = missing[:0]
		for _, line := range shownMetrics {
			if !strings.Contains(text, "\n"+line) {
				missing = append(missing, line)
			}
		}
		return len(missing) == 0
	}, "every metric is shown")
}
