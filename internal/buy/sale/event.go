package sale

import (
	"context"

	"seckill/ent"
	"seckill/internal/outbox/webhook"
)

// eventData is a change of a sale's status as other systems receive it. Fields are only
// ever added.
type eventData struct {
	SaleID         string `json:"saleId"`
	Status         Status `json:"status"`
	PreviousStatus Status `json:"previousStatus"`
	Act            Act    `json:"act"`
	Revision       int64  `json:"revision"`
}

// writeEvent writes the event of an applied change, in its transaction.
func (c Change) writeEvent(ctx context.Context, tx *ent.Tx) error {
	if c.From == c.To {
		return nil
	}
	return c.Outbox.Write(ctx, tx, webhook.SaleStateChanged, func() []webhook.Event {
		saleID := c.Sale.Public()
		return []webhook.Event{{Kind: webhook.SaleStateChanged, Subject: saleID, At: c.At, Data: eventData{
			SaleID: saleID, Status: c.To, PreviousStatus: c.From, Act: c.Act, Revision: c.next(),
		}}}
	})
}
