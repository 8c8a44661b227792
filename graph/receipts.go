package graph

import (
	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/pay/receipt"
	"seckill/internal/platform/money"
)

// toReceipt returns the receipt of an order; nil before it was paid.
func toReceipt(o *order.Order, s receipt.Seller) *model.Receipt {
	if o.PaidAt == nil {
		return nil
	}
	out := &model.Receipt{Number: o.Number, Seller: orAbsent(s.Name), SellerDetails: s.Details}
	if out.SellerDetails == nil {
		out.SellerDetails = []string{}
	}
	if t := s.Tax; t != nil {
		total := money.Amount{Minor: o.TotalMinor(), Currency: o.Currency}
		out.Tax = &model.ReceiptTax{Name: t.Name, Rate: t.Rate, Amount: toMoney(t.In(total))}
	}
	return out
}
