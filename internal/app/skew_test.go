package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"seckill/internal/config"
	"seckill/internal/id"
	"seckill/internal/seed"
	"seckill/internal/testenv"
)

// payable is an order as its buyer sees it.
type payable struct {
	Status          string
	PaymentDeadline *time.Time
}

// A wrong clock of one process shortens no payment window: the deadlines it writes and
// the deadlines it checks use the clock of Redis, which all processes share.
func TestOrdersLapseByTheClockThatAllShare(t *testing.T) {
	t.Parallel()
	const ahead = 5 * time.Minute // this host ahead of Redis
	server := miniredis.RunT(t)
	server.SetTime(time.Now().Add(-ahead))
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(testenv.RedisURLAt(server.Addr())) })
	db := s.database()
	s.start("api", "worker")
	// The clock of miniredis stands still.
	made := s.seed(seed.Input{Users: 2, Stock: 2, PathTTL: 10 * time.Minute, OpensIn: -2 * ahead})
	look := func(buyer seed.LoadUser, task string) (o *payable) {
		t.Helper()
		var data struct{ Order *payable }
		s.ask(buyer.AccessToken, `query($o: ID!) { order(id: $o) { status paymentDeadline } }`,
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
		if left := time.Until(o.PaymentDeadline.Add(ahead)); left < 14*time.Minute || left > 16*time.Minute {
			t.Errorf("%s to pay, by the clock of Redis, want 15 minutes", left)
		}
	}
	// The first is overdue by both clocks, the second only by the clock of this host.
	for i, since := range []time.Duration{2 * ahead, ahead / 2} {
		task, err := id.Parse(id.Task, tasks[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.SQL.ExecContext(t.Context(), "UPDATE orders SET payment_deadline = $1 WHERE id = $2", time.Now().Add(-since), task); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, patience, func() bool { return look(made.Users[0], tasks[0]).Status == "EXPIRED" }, "the first lapses")
	if o := look(made.Users[1], tasks[1]); o.Status != "PENDING_PAYMENT" {
		t.Errorf("the second is %s", o.Status)
	}
}
