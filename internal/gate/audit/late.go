package audit

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/ent/paymentevent"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// readLate finds the reservations of expired orders that are being paid late. The units
// are reserved in Redis before the transaction that pays the order, so that no row has
// the name of the reservation yet. It is unsettled while an event waits for that
// transaction.
func readLate(ctx context.Context, tx *ent.Tx, it *itemState) (map[id.Task]bool, error) {
	late := map[id.Task]bool{} // by name
	paying := map[id.Task]id.Task{}
	for task, o := range it.orders {
		h, reserved := it.gate.reservations[o.user]
		if o.status == order.Expired && reserved && h.task == payment.LateReservation(id.Order(task)) {
			late[h.task], paying[task] = false, h.task
		}
	}
	if len(late) == 0 {
		return late, nil
	}
	of := map[id.Payment]id.Task{} // payment → name
	for p, row := range it.payments {
		if name, ok := paying[id.Task(row.order)]; ok {
			of[p] = name
		}
	}
	for last := (id.Held{}); ; {
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
