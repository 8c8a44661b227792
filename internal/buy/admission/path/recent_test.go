package path_test

import (
	"errors"
	"testing"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// What one buyer was refused for is known for the next ones, without Redis, for 20 ms.
func TestARefusalIsRememberedFor20msForOtherBuyers(t *testing.T) {
	t.Parallel()
	onBothWith(t, 1, func(t *testing.T, f *fixture) {
		waived := func() path.IssueInput {
			in := f.input(id.New[id.User](), captcha.Answer{})
			in.Waived = true
			return in
		}
		if err := f.paths.Recent(t.Context(), waived()); err != nil {
			t.Fatalf("before any call: %v", err)
		}
		f.gate("stock", 1)
		f.issue(waived())
		testenv.Eventually(t, testenv.Wait, func() bool { // on a busy machine a reply may be too old at once
			refused[path.NoPermit](f, waived())
			_, known := errors.AsType[path.NoPermit](f.paths.Recent(t.Context(), waived()))
			return known
		}, "that no permit is free is known")
		testenv.Eventually(t, testenv.Wait, func() bool { return f.paths.Recent(t.Context(), waived()) == nil }, "it is forgotten")
		f.gate("stock", 2) // a permit is free again
		f.issue(waived())

		future := time.Now().Add(time.Hour)
		for name, c := range map[string]struct {
			change []any
			known  func(error) bool
		}{
			"sold out": {[]any{"gate", "open", "stock", 0}, func(err error) bool { _, ok := errors.AsType[reservation.NoneLeft](err); return ok }},
			"paused":   {[]any{"gate", "paused", "stock", 9}, phase(sale.PhasePaused)},
			"ended":    {[]any{"gate", "ended"}, phase(sale.PhaseEnded)},
			"upcoming": {[]any{"gate", "open", "opens", future.UnixMilli()}, phase(sale.PhaseUpcoming)},
		} {
			f.gate(c.change...)
			testenv.Eventually(t, testenv.Wait, func() bool {
				if p, err := f.paths.Issue(t.Context(), waived()); err == nil {
					t.Fatalf("%s: %+v", name, p)
				}
				return c.known(f.paths.Recent(t.Context(), waived()))
			}, name+" is known")
		}
		f.gate("gate", "open", "stock", 100)
		f.issue(waived())
		if err := f.paths.Recent(t.Context(), waived()); err != nil {
			t.Errorf("while tokens are issued: %v", err)
		}
	})
}

func phase(want sale.Phase) func(error) bool {
	return func(err error) bool {
		r, ok := errors.AsType[sale.NotOpen](err)
		return ok && r.Phase == want
	}
}
