package payment_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"seckill/internal/pay/payment"
)

func TestAProviderThatIsNotSetUpIsWarnedOfOnceWithWhatToDo(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		s.begin(s.buy(), "key-1")
		var log bytes.Buffer
		without := payment.New(payment.Config{DB: s.db, Orders: s.orders, Gate: s.flaky, Clock: s.clock,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		check := func(want int) {
			t.Helper()
			if counts, err := without.CheckOpen(t.Context(), ""); err != nil || len(counts) != 0 {
				t.Errorf("%v %v", counts, err)
			}
			if got := strings.Count(log.String(), "level=WARN"); got != want || strings.Contains(log.String(), "ERROR") {
				t.Errorf("%d warnings, want %d:\n%s", got, want, log.String())
			}
		}
		s.clock.Advance(time.Minute)
		check(1)
		for _, part := range []string{"waiting=payments", "SECKILL_SANDBOX=trial", "seckill order expire"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("it does not say %q: %s", part, log.String())
			}
		}
		s.clock.Advance(2 * time.Minute)
		check(1)
		s.clock.Advance(24 * time.Hour) // its order has expired
		check(1)
	})
}
