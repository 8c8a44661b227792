package payment

import (
	"context"
	"sync"
	"time"

	"seckill/internal/platform/clock"
)

// forgedEvery is the shortest interval between two reports of forged call-backs, so that
// a flood of them does not fill the security log.
const forgedEvery = 10 * time.Second

// forgeries reports forged call-backs, at most one report per forgedEvery. It is safe for
// concurrent use.
type forgeries struct {
	security Security // nil = they are not reported
	clock    clock.Clock

	mu    sync.Mutex
	count int       // guarded by mu; since the last report
	next  time.Time // guarded by mu
}

// seen counts a forged call-back. The report has the number since the one before, and the
// provider and the client of the last.
func (f *forgeries) seen(ctx context.Context, provider string) {
	if f.security == nil {
		return
	}
	now := f.clock.Now()
	f.mu.Lock()
	f.count++
	count, due := f.count, !now.Before(f.next)
	if due {
		f.count, f.next = 0, now.Add(forgedEvery)
	}
	f.mu.Unlock()
	if due {
		f.security.CallbacksForged(ctx, provider, count)
	}
}
