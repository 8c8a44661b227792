package operator

import (
	"context"
	"time"

	"seckill/ent"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// Withdraw takes a submission back: the sale is a draft again.
func (s *Service) Withdraw(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	return s.do(ctx, act{by: in.By, sale: in.Sale, what: sale.ActWithdraw, note: in.Note})
}

// Discard cancels a draft that the operator created. It stays in lists and logs.
func (s *Service) Discard(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	return s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActDiscard, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, error) {
			if v.CreatedBy == nil || *v.CreatedBy != in.By.ID {
				return "", conflict("saleId")
			}
			return sale.Cancelled, nil
		},
		set: func(u *ent.SaleUpdate) { u.SetSettledAt(s.cfg.Clock.Now()) }, // it was never in Redis
	})
}

// CopyInput is what a copy of a sale does not take from it.
type CopyInput struct {
	Sale             id.Sale
	Title            string // "" = that of the sale
	StartsAt, EndsAt time.Time
}

// CopySale creates a draft with the items, prices, stock, rules and switches of a sale.
func (s *Service) CopySale(ctx context.Context, by sale.Actor, in CopyInput) (*sale.Sale, error) {
	if err := authorise(by, sale.ActCreate); err != nil {
		return nil, err
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, unknown("saleId")
	}
	return s.CreateSale(ctx, by, copyOf(v, in))
}

func copyOf(v *sale.Sale, in CopyInput) SaleDraft {
	d := SaleDraft{
		Title: in.Title, Rules: v.Rules, StartsAt: in.StartsAt, EndsAt: in.EndsAt, PaymentWindow: v.PaymentWindow,
		PurchaseLimit: v.PurchaseLimit, HideExactStock: v.HideExactStock, RequiresAddress: v.RequiresAddress,
		Private: v.Private, Requires: v.Requires, LimitBy: &v.LimitBy, Access: &v.Access, Draw: v.Draw,
		Accent: v.Accent.Color, Switches: &v.Switches,
	}
	if d.Title == "" {
		d.Title = v.Title
	}
	for _, item := range v.Items {
		stock := max(1, item.Total)
		d.Items = append(d.Items, ItemDraft{Goods: item.Goods.ID, Price: item.Price, Stock: stock,
			PurchaseLimit: min(item.PurchaseLimit, stock)})
	}
	return d
}
