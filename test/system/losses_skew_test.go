package system_test

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// payable is an order as its buyer sees it.
type payable struct {
	Status          string
	PaymentDeadline *time.Time
}

// The clock of Redis is behind: payment windows follow the clocks of Postgres and this
// host, which agree, and no order expires before all three agree.
func TestNoOrderExpiresWhileTheClocksDisagree(t *testing.T) {
	t.Parallel()
	const behind = 5 * time.Minute
	server := miniredis.RunT(t)
	server.SetTime(time.Now().Add(-behind))
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(testenv.RedisURLAt(server.Addr())) })
	db := s.database()
	s.start("api", "worker")
	// The clock of miniredis stands still.
	made := s.seed(seed.Input{Users: 2, Stock: 2, PathTTL: 10 * time.Minute, OpensIn: -2 * behind})
	look := func(buyer seed.LoadUser, task string) (o *payable) {
		t.Helper()
		var data struct{ Order *payable }
		s.ask(buyer.AccessToken, `query($o: ID!) { order(by: { id: $o }) { status paymentDeadline } }`,
			map[string]any{"o": "ord_" + strings.TrimPrefix(task, "tsk_")}).into(t, &data)
		return data.Order
	}
	var tasks []string
	for _, u := range made.Users {
		p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.why() != "" {
			t.Fatalf("%+v %v", p, err)
		}
		tasks = append(tasks, p.OrderTask.ID)
		var o *payable
		testenv.Eventually(t, patience, func() bool { o = look(u, p.OrderTask.ID); return o != nil }, "the order is there")
		if left := time.Until(*o.PaymentDeadline); left < 15*time.Minute-testenv.Wait || left > 16*time.Minute {
			t.Errorf("%s to pay, want 15 minutes", left)
		}
	}
	task, err := id.ParseTask(tasks[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL.ExecContext(t.Context(), "UPDATE orders SET payment_deadline = $1 WHERE id = $2", time.Now().Add(-2*behind), task); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(3 * time.Second) // three steps of the loop that expires orders
	testenv.Eventually(t, patience, func() bool { return time.Now().After(until) }, "time passes")
	if o := look(made.Users[0], tasks[0]); o.Status != "PENDING_PAYMENT" {
		t.Errorf("while the clocks disagree the overdue order is %s", o.Status)
	}
	testenv.Eventually(t, patience, func() bool {
		server.SetTime(time.Now())
		return look(made.Users[0], tasks[0]).Status == "EXPIRED"
	}, "the overdue order expires once the clocks agree")
	if o := look(made.Users[1], tasks[1]); o.Status != "PENDING_PAYMENT" {
		t.Errorf("the other order is %s", o.Status)
	}
}
