package audit

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/paymentevent"
	"seckill/internal/order"
	"seckill/internal/payment"
)

// readLate finds the reservations of expired orders that are being paid late. The units
// are reserved in Redis before the transaction that pays the order, so that no row has
// the name of the reservation yet. It is unsettled while an event waits for that
// transaction.
func readLate(ctx context.Context, tx *ent.Tx, it *itemState) (map[uuid.UUID]bool, error) {
	late := map[uuid.UUID]bool{} // by name
	paying := map[uuid.UUID]uuid.UUID{}
	for task, o := range it.orders {
		h, reserved := it.gate.holders[o.user]
		if o.status == order.Expired && reserved && h.task == payment.LateClaim(task) {
			late[h.task], paying[task] = false, h.task
		}
	}
	if len(late) == 0 {
		return late, nil
	}
	of := map[uuid.UUID]uuid.UUID{} // payment → name
	for p, row := range it.payments {
		if name, ok := paying[row.order]; ok {
			of[p] = name
		}
	}
	for last := uuid.Nil; ; {
		rows, err := tx.PaymentEvent.Query().Where(paymentevent.StateEQ(paymentevent.StateRECEIVED), paymentevent.IDGT(last)).
			Order(paymentevent.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read payment events: %w", err)
		}
		for _, row := range rows {
			if name, ok := of[row.PaymentID]; ok {
				late[name] = true
			}
			last = row.ID
		}
		if len(rows) < page {
			return late, nil
		}
	}
}
