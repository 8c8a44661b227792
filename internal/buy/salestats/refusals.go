package salestats

import (
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/refusal"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/fault"
)

// Refusals keeps refused calls with the units that were left.
type Refusals struct {
	log   *refusal.Log
	stock *reservation.StockCache
}

// NewRefusals returns Refusals.
func NewRefusals(log *refusal.Log, stock *reservation.StockCache) *Refusals {
	return &Refusals{log: log, stock: stock}
}

// Note keeps a refused call. It does not wait. Redis knows that an item is sold out before
// the copy in memory does.
func (r *Refusals) Note(a refusal.Refused) {
	left, known := 0, a.Code == fault.SoldOut
	if view, read := r.stock.View(a.Item); read && !known {
		left, known = view.ForSale(r.stock.ServerTime()), true
	}
	if known {
		a.Left = &left
	}
	r.log.Note(a)
}

// unserved keeps the end of a ticket among the refusals of its buyer.
func (r *Refusals) unserved(u queue.Unserved) {
	r.Note(refusal.Refused{User: u.User, Sale: u.Sale, Item: u.Item, Stage: string(StageQueue), Code: u.Why,
		Ahead: u.Ahead})
}
