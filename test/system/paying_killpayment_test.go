package system_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// killedPayment is a moment in the life of a payment at which the process is killed.
type killedPayment struct {
	name string
	// statement is the text with which the statement to hold begins. It never reaches
	// Postgres.
	statement string
	// stage is the step during which it is sent.
	stage string
}

// killedPayments lists the moments, the most revealing first.
func killedPayments() []killedPayment {
	return []killedPayment{
		{"after the charge is recorded, before the order is paid", `UPDATE "orders"`, "charge"},
		{"after the provider has refunded, before it is noted", `UPDATE "payments"`, "refund"},
		{"before the provider has the payment", `INSERT INTO "sandbox_charges"`, "begin"},
		{"after the provider has the payment, before it is noted", `UPDATE "payments"`, "begin"},
		{"after the charge, before it is recorded", `INSERT INTO "payment_events"`, "charge"},
		{"before the provider has the refund", `UPDATE "sandbox_charges"`, "refund"},
	}
}

// The provider's ledger is compared with ours after each kill: the sandbox keeps it in
// tables that only the sandbox reads.
func TestAProcessKilledInsideAPaymentKeepsTheMoneyRight(t *testing.T) {
	t.Parallel()
	for _, point := range atMost(killsPerTest, killedPayments()) {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := s.payingBuyer(seed.Input{Users: 1, Stock: 2})
			p.point = point
			p.order = "ord_" + strings.TrimPrefix(s.bought(p.token, p.made), "tsk_")
			p.await("PENDING_PAYMENT")

			key, page := uuid.NewString(), ""
			pay := `mutation($o: ID!, $k: String!) { payOrder(input: {orderId: $o, optionId: "sandbox", idempotencyKey: $k}) { payment { redirectUrl } userErrors { code } } }`
			p.stage("begin", func() {
				testenv.Eventually(t, testenv.Wait, func() bool { // the same call, until it is answered
					var data struct {
						PayOrder struct{ Payment *struct{ RedirectURL string } }
					}
					out, err := s.try(p.token, pay, map[string]any{"o": p.order, "k": key})
					if err != nil || out.code() != "" {
						return false
					}
					out.into(t, &data)
					if data.PayOrder.Payment != nil {
						page = data.PayOrder.Payment.RedirectURL
					}
					return page != ""
				}, "the buyer sees the page of the bank")
			})
			p.stage("charge", func() { s.choose(page, "approve"); p.await("PAID") })
			if why := s.mutate(p.token, "requestRefund", "order { status }", map[string]any{"orderId": p.order, "reason": "too heavy", "idempotencyKey": uuid.NewString()}).why(); why != "" {
				t.Fatalf("requestRefund: %s", why)
			}
			asked, _ := s.refunds(p.operator, "first: 1")
			p.stage("refund", func() {
				if why := s.mutate(p.operator, "decideRefund", "order { status }", map[string]any{"refundId": asked[0].ID, "approve": true}).why(); why != "" {
					t.Errorf("decideRefund: %s", why)
				}
				p.await("REFUNDED")
			})
			p.wantBooks()
		})
	}
}

// payingBuyer is a buyer whose process is killed.
type payingBuyer struct {
	*site
	process  *process
	record   *testenv.Proxy // before Postgres
	point    killedPayment
	settings []string // of each process
	made     *seed.Result
	token    string
	operator string
	second   string // another operator
	order    string
	recovery time.Duration
	books    *postgres.DB
}

// payingBuyer seeds a sale and starts a process behind a proxy to Postgres.
func (s *site) payingBuyer(in seed.Input) *payingBuyer {
	s.t.Helper()
	record, behind := s.databaseThroughProxy()
	settings := []string{"SECKILL_HTTP_ADDR=" + testenv.ReserveAddr(s.t), behind}
	p := &payingBuyer{site: s, process: s.launch("api,worker,scheduler", settings...), record: record, settings: settings}
	p.made = s.seed(in)
	p.operator = s.staff("operator@example.com", "OPERATOR")
	p.token = p.made.Users[0].AccessToken
	p.books = s.database()
	return p
}

// stage runs a step. In the stage of the point the process is killed in the middle of it.
func (p *payingBuyer) stage(name string, step func()) {
	p.t.Helper()
	if p.point.stage != name {
		step()
		return
	}
	p.killAt(p.point.statement, step)
}

// killAt runs a step. The process is killed when it sends a statement, and another one
// takes over.
func (p *payingBuyer) killAt(statement string, step func()) {
	p.t.Helper()
	caught := p.record.HoldRequest(statement)
	ended := make(chan struct{})
	go func() { defer close(ended); step() }()
	await(p.t, caught, "the process does not come to this step")
	p.process.kill()
	p.record.Cut()
	p.record.Release()
	killed := time.Now()
	p.process = p.launch("api,worker,scheduler", p.settings...)
	await(p.t, ended, "the step does not end after the kill")
	p.recovery = time.Since(killed)
}

func (p *payingBuyer) status() string {
	var data struct{ Order *struct{ Status string } }
	out, err := p.try(p.token, `query($o: ID!) { order(by: { id: $o }) { status } }`, map[string]any{"o": p.order})
	if err != nil || out.code() != "" {
		return ""
	}
	out.into(p.t, &data)
	if data.Order == nil {
		return ""
	}
	return data.Order.Status
}

func (p *payingBuyer) await(status string) {
	p.t.Helper()
	testenv.Eventually(p.t, testenv.Wait, func() bool { return p.status() == status }, "the order is "+status)
}

// wantBooks compares the ledger of the bank with ours, and records the fault.
func (p *payingBuyer) wantBooks() {
	p.t.Helper()
	var charges, paid, back, refunds, payments, orders int
	err := p.books.SQL.QueryRowContext(p.t.Context(), `SELECT (SELECT count(*) FROM sandbox_charges WHERE status = 'PAID'),
		(SELECT COALESCE(sum(amount_minor), 0) FROM sandbox_charges WHERE status = 'PAID'), (SELECT COALESCE(sum(refunded_minor), 0) FROM sandbox_charges),
		(SELECT count(*) FROM refunds WHERE status = 'SUCCEEDED'), (SELECT count(*) FROM payments WHERE status = 'REFUNDED'),
		(SELECT count(*) FROM orders)`).Scan(&charges, &paid, &back, &refunds, &payments, &orders)
	if err != nil || charges != 1 || paid != back || refunds != 1 || payments != 1 {
		p.t.Errorf("the bank took %d payments of %d and gave %d back; %d refunds and %d refunded payments are recorded (%v)", charges, paid, back, refunds, payments, err)
	}
	testenv.Eventually(p.t, testenv.Wait, func() bool { return p.look(p.made.SaleID).Redis.Stock == 2 }, "the unit is on sale again")
	report := p.audit(p.made.SaleID)
	testenv.RecordFault(p.t, testenv.FaultRow{
		Fault: "process killed " + p.point.name, Accepted: 1, Stored: orders, LostUnits: lostUnits(report), Recovery: p.recovery,
	})
}

// databaseThroughProxy starts a proxy to the site's Postgres and returns it with the
// setting that makes a process use it.
func (s *site) databaseThroughProxy() (*testenv.Proxy, string) {
	s.t.Helper()
	at, err := url.Parse(s.cfg.DatabaseURL.Reveal())
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := testenv.NewProxy(s.t, at.Host)
	at.Host = proxy.Addr()
	return proxy, "SECKILL_DATABASE_URL=" + at.String()
}
