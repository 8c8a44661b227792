package queue_test

import (
	"errors"
	"testing"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/id"
)

// That no permit is free is known from a call of another buyer. A buyer with a path token may
// have another, which only the gate decides.
func TestABuyerWithAPathWhoWasNotAskedForKeepsIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		holder := id.New[id.User]()
		f.issue(holder)
		in := f.input(holder)
		in.Unasked = true
		if ticket, err := f.queue.Enter(t.Context(), in); !errors.Is(err, queue.ErrUnusedPath) {
			t.Errorf("with a path token: %+v, %v", ticket, err)
		}
		in = f.input(id.New[id.User]())
		in.Unasked = true
		ticket, err := f.queue.Enter(t.Context(), in)
		if err != nil || ticket.Status != queue.Waiting || ticket.Position == nil || ticket.Position.Ahead != 0 {
			t.Fatalf("without one: %+v, %v", ticket, err)
		}
		if seen, err := f.queue.Own(t.Context(), ticket.ID, in.User); err != nil || seen.Position.Ahead != ticket.Position.Ahead ||
			*seen.Position.Chance != *ticket.Position.Chance || seen.Nonce != ticket.Nonce {
			t.Errorf("entered as %+v, seen as %+v, %v", ticket.Position, seen.Position, err)
		}
	})
}
