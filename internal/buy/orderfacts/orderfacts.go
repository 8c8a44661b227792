// Package orderfacts passes on what happened to orders and stock: it writes the events for
// other systems and the facts for notices, in the transaction in which it happened. It owns
// the form of these events.
//
// It does not own their delivery (packages webhook and notice) or the orders (package order,
// which knows only the interface order.Facts).
package orderfacts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/ent"
	"seckill/ent/fulfilment"
	"seckill/internal/buy/order"
	"seckill/internal/identity/recipient"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// lowShare is the share of an item's units at which its stock is low: a tenth.
const lowShare = 10

// eventData is an order as other systems receive it. Fields are only ever added.
type eventData struct {
	OrderID         string       `json:"orderId"`
	Number          string       `json:"number"`
	Type            order.Kind   `json:"type"`
	SaleID          string       `json:"saleId"`
	ItemID          string       `json:"itemId"`
	BuyerID         string       `json:"buyerId"`
	Status          order.Status `json:"status"`
	Quantity        int          `json:"quantity"`
	UnitPrice       eventAmount  `json:"unitPrice"`
	Total           eventAmount  `json:"total"`
	Revision        int64        `json:"revision"`
	PlacedAt        time.Time    `json:"placedAt"`
	PaymentDeadline *time.Time   `json:"paymentDeadline,omitempty"`
	PaidAt          *time.Time   `json:"paidAt,omitempty"`
	// Recipient is to whom the order goes, where its sale requires an address.
	Recipient  *recipient.Recipient `json:"recipient,omitempty"`
	Fulfilment *eventFulfilment     `json:"fulfilment,omitempty"`
	Metadata   order.Metadata       `json:"metadata,omitempty"`
	// RefundedQuantity and RefundedAmount are what went back so far.
	RefundedQuantity int          `json:"refundedQuantity,omitempty"`
	RefundedAmount   *eventAmount `json:"refundedAmount,omitempty"`
	Refund           *eventRefund `json:"refund,omitempty"` // of order.refunded
}

// eventRefund is a refund as other systems receive it.
type eventRefund struct {
	Quantity int         `json:"quantity"`
	Amount   eventAmount `json:"amount"`
}

// eventFulfilment is how far the goods of an order are, as other systems receive it.
type eventFulfilment struct {
	State       order.FulfilmentState `json:"state"`
	Carrier     string                `json:"carrier,omitempty"`
	TrackingURL string                `json:"trackingUrl,omitempty"`
	UpdatedAt   time.Time             `json:"updatedAt"`
}

// eventAmount is an amount as other systems receive it, and as the API returns it.
type eventAmount struct {
	Amount   string `json:"amount"`
	Currency string `json:"currencyCode"`
}

func amountOf(minor int64, currency string) eventAmount {
	return eventAmount{money.Amount{Minor: minor, Currency: currency}.Decimal(), currency}
}

// Outbox implements order.Facts. Either field may be nil.
type Outbox struct {
	Webhooks *webhook.Outbox
	Notices  *notice.Outbox
}

var _ order.Facts = Outbox{}

// Moved writes the events of orders that made the same move; new orders move from "".
func (o Outbox) Moved(ctx context.Context, tx *ent.Tx, from order.Status, orders ...*order.Order) error {
	if kind := eventOf(from, orders[0].Status); kind != "" {
		if err := o.write(ctx, tx, change{kind: kind}, orders...); err != nil {
			return err
		}
	}
	if from != "" {
		return nil
	}
	placed := collect.Map(orders, func(o *order.Order) notice.Placed {
		return notice.Placed{Order: o.ID, User: o.User, At: o.CreatedAt, Deadline: *o.PaymentDeadline}
	})
	return o.Notices.OrdersPlaced(ctx, tx, placed)
}

// Refunded writes the event of a refund of some or all units.
func (o Outbox) Refunded(ctx context.Context, tx *ent.Tx, of *order.Order, units int) error {
	refund := &eventRefund{Quantity: units, Amount: amountOf(of.UnitPriceMinor*int64(units), of.Currency)}
	return o.write(ctx, tx, change{webhook.OrderRefunded, refund}, of)
}

// RecipientChanged writes the event of a corrected address.
func (o Outbox) RecipientChanged(ctx context.Context, tx *ent.Tx, of *order.Order) error {
	return o.write(ctx, tx, change{kind: webhook.OrderRecipient}, of)
}

// FulfilmentChanged writes the event of goods on their way.
func (o Outbox) FulfilmentChanged(ctx context.Context, tx *ent.Tx, of *order.Order) error {
	return o.write(ctx, tx, change{kind: webhook.OrderFulfilment}, of)
}

// Reviewed writes the notice of an order that is held for review; of one that was released, that of its
// payment deadline.
func (o Outbox) Reviewed(ctx context.Context, tx *ent.Tx, of *order.Order) error {
	n := notice.Reviewed{Order: of.ID, User: of.User, At: of.UpdatedAt}
	if of.UnderReview() {
		n.Until = of.Review.Until()
	} else if of.PaymentDeadline != nil {
		n.Released, n.Until = true, *of.PaymentDeadline
	}
	return o.Notices.OrderReviewed(ctx, tx, n)
}

// NotCharged writes the notices of an unpaid order of a drawn entry whose card was declined.
func (o Outbox) NotCharged(ctx context.Context, tx *ent.Tx, of *order.Order) error {
	return o.Notices.ChargeFailed(ctx, tx, notice.Placed{Order: of.ID, User: of.User, At: of.UpdatedAt,
		Deadline: *of.PaymentDeadline})
}

// eventOf returns the kind of event of a move; "" = none. A new order moves from "".
func eventOf(from, to order.Status) webhook.Kind {
	switch to {
	case order.PendingPayment:
		return webhook.OrderPlaced
	case order.Paid:
		if from == order.Refunding { // the refund was rejected
			return ""
		}
		return webhook.OrderPaid
	case order.Expired:
		return webhook.OrderExpired
	case order.Cancelled:
		return webhook.OrderCancelled
	case order.Refunding, order.Refunded: // see Refunded
	}
	return ""
}

// change is what an event is about.
type change struct {
	kind   webhook.Kind
	refund *eventRefund // of OrderRefunded
}

// write writes an event of the change for each order. It reads what belongs to the orders
// only when another system receives the events.
func (o Outbox) write(ctx context.Context, tx *ent.Tx, c change, orders ...*order.Order) error {
	if wants, err := o.Webhooks.Wants(ctx, tx, c.kind); err != nil || !wants {
		return err
	}
	ids := collect.Map(orders, func(o *order.Order) id.Order { return o.ID })
	recipients, err := recipient.Of(ctx, tx.OrderRecipient, ids...)
	if err != nil {
		return err
	}
	fulfilments, err := tx.Fulfilment.Query().Where(fulfilment.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read fulfilments of orders: %w", err)
	}
	metadata, err := order.MetadataOf(ctx, tx.OrderMetadata, ids...)
	if err != nil {
		return err
	}
	return o.Webhooks.Write(ctx, tx, c.kind, func() []webhook.Event {
		events := make([]webhook.Event, len(orders))
		for i, o := range orders {
			data := eventDataOf(o)
			data.Metadata, data.Refund = metadata[o.ID], c.refund
			if r, ok := recipients[o.ID]; ok {
				data.Recipient = &r
			}
			if at := slices.IndexFunc(fulfilments, func(row *ent.Fulfilment) bool { return row.ID == o.ID }); at >= 0 {
				row := fulfilments[at]
				data.Fulfilment = &eventFulfilment{order.FulfilmentState(row.State), row.Carrier, row.TrackingURL,
					row.UpdatedAt.UTC()}
			}
			events[i] = webhook.Event{Kind: c.kind, Subject: data.OrderID, At: o.UpdatedAt, Data: data}
		}
		return events
	})
}

func eventDataOf(o *order.Order) eventData {
	data := eventData{
		OrderID: o.ID.Public(), Number: o.Number, Type: o.Kind, SaleID: o.Sale.Public(), ItemID: o.Item.Public(),
		BuyerID: o.User.Public(), Status: o.Status, Quantity: o.Quantity,
		UnitPrice: amountOf(o.UnitPriceMinor, o.Currency), Total: amountOf(o.TotalMinor(), o.Currency),
		Revision: o.Version, PlacedAt: o.CreatedAt, PaymentDeadline: o.PaymentDeadline, PaidAt: o.PaidAt,
		RefundedQuantity: o.RefundedUnits(),
	}
	if data.RefundedQuantity > 0 {
		refunded := amountOf(o.RefundedMinor(), o.Currency)
		data.RefundedAmount = &refunded
	}
	return data
}

// stockData is the stock of an item as other systems receive it.
type stockData struct {
	SaleID    string `json:"saleId"`
	ItemID    string `json:"itemId"`
	Available int    `json:"available"`
	Total     int    `json:"total"`
	Revision  int64  `json:"revision"`
}

// UnitsLost writes an event when the units that an item just lost took its available units to
// a tenth of the total or below. The item's row is locked.
func (o Outbox) UnitsLost(ctx context.Context, tx *ent.Tx, item id.Item, lost order.LostUnits) error {
	wants, err := o.Webhooks.Wants(ctx, tx, webhook.StockLow)
	if err != nil || !wants {
		return err
	}
	row, err := tx.SaleItem.Get(ctx, item)
	if err != nil {
		return fmt.Errorf("read stock of item %s: %w", item, err)
	}
	if !isLow(row.Available, row.Total) || isLow(row.Available+lost.Available, row.Total+lost.Total) {
		return nil
	}
	return o.Webhooks.Write(ctx, tx, webhook.StockLow, func() []webhook.Event {
		return []webhook.Event{{Kind: webhook.StockLow, Subject: item.Public(), At: lost.At, Data: stockData{
			SaleID: row.SaleID.Public(), ItemID: item.Public(), Available: row.Available, Total: row.Total,
			Revision: row.Revision,
		}}}
	})
}

func isLow(available, total int) bool { return available <= total/lowShare }
