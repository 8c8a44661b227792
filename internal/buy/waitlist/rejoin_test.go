package waitlist_test

import (
	"context"
	"testing"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
)

// Another process reserves a unit for an entry that it read before its buyer left, and
// has not marked it for release yet. The buyer has joined again.
func TestABuyerWhoLeftAndJoinedAgainKeepsTheNewPlaceUntilTheOldUnitIsReleased(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2)
	sold := []*order.Order{h.buy(), h.buy()}
	user := id.New[id.User]()
	old, refusal := h.join(user)
	if refusal != nil {
		t.Fatal(refusal)
	}
	_, err := h.line.Leave(t.Context(), old.ID, user)
	h.must(err)
	h.step()
	again, refusal := h.join(user)
	if refusal != nil || again.ID == old.ID {
		t.Fatalf("%+v %v", again, refusal)
	}
	for _, o := range sold {
		h.cancel(o)
	}
	late := reservation.Reacquire{Ref: reservation.Ref{Sale: h.sale, Item: h.item, User: user, Task: id.Task(old.ID)}, Quantity: 1}
	if r, err := h.gate.Reacquire(t.Context(), late); err != nil || r.Code != reservation.Reacquired {
		t.Fatalf("%+v %v", r, err)
	}
	h.step()
	h.want(again, waitlist.Waiting)
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { // by the other process
		return tx.WaitlistEntry.UpdateOneID(old.ID).AddVersion(1).SetReturnDue(true).Exec(ctx)
	}))
	h.step()
	h.want(again, waitlist.Offered)
	h.wantFigures(figures{stock: 1, reserved: 1, holders: 1, messages: 2})
}
