package operator

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/money"
	"seckill/internal/sale"
)

// GoodsDraft is a goods as an operator writes it.
type GoodsDraft struct {
	Name        string
	Description string
	ImageURL    *string // nil = no picture
	ListPrice   money.Amount
}

func (d *GoodsDraft) check() fault.Refusal {
	return first(
		needed(&d.Name, maxName, "name"),
		bounded(d.Description, maxText, "description"),
		pictured(d.ImageURL, "imageUrl"),
		priced(d.ListPrice, "listPrice"),
	)
}

// CreateGoods makes a catalogue entry.
func (s *Service) CreateGoods(ctx context.Context, by sale.Actor, d GoodsDraft) (*sale.Goods, fault.Refusal, error) {
	if err := staff(by); err != nil {
		return nil, nil, err
	}
	if refusal := d.check(); refusal != nil {
		return nil, refusal, nil
	}
	goodsID := s.cfg.NewID()
	err := s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Goods.Create().SetID(goodsID).SetName(d.Name).SetDescription(d.Description).SetNillableImageURL(d.ImageURL).
			SetListPriceMinor(d.ListPrice.Minor).SetCurrency(d.ListPrice.Currency).
			SetChangedBy(by.ID).SetCreatedAt(s.cfg.Clock.Now()).Exec(ctx)
	})
	if err != nil {
		return nil, nil, unclear(fmt.Errorf("create goods: %w", err))
	}
	s.cfg.Forget()
	made, err := s.cfg.Sales.GoodsByID(ctx, goodsID)
	return made, nil, err
}

// GoodsPatch is what changes of a goods; nil leaves a field as it is.
type GoodsPatch struct {
	Name        *string
	Description *string
	ImageURL    **string // nil inside = take the picture away
	ListPrice   *money.Amount
}

func (p GoodsPatch) of(g *sale.Goods) GoodsDraft {
	d := GoodsDraft{Name: g.Name, Description: g.Description, ImageURL: g.ImageURL, ListPrice: g.ListPrice}
	set(&d.Name, p.Name)
	set(&d.Description, p.Description)
	set(&d.ImageURL, p.ImageURL)
	set(&d.ListPrice, p.ListPrice)
	return d
}

// set takes a value over when there is one.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// UpdateGoods changes a catalogue entry. Its currency stays.
func (s *Service) UpdateGoods(ctx context.Context, by sale.Actor, goodsID uuid.UUID, p GoodsPatch) (*sale.Goods, fault.Refusal, error) {
	if err := staff(by); err != nil {
		return nil, nil, err
	}
	for range maxTries {
		g, err := s.cfg.Sales.GoodsByID(ctx, goodsID)
		if err != nil {
			return nil, nil, err
		}
		if g == nil {
			return nil, unknown("goodsId"), nil
		}
		d := p.of(g)
		if refusal := d.check(); refusal != nil {
			return g, refusal, nil
		}
		if d.ListPrice.Currency != g.ListPrice.Currency {
			return g, bad("the currency stays "+g.ListPrice.Currency, "listPrice", "currencyCode"), nil
		}
		n, err := s.updateGoods(ctx, by, g, d)
		if err != nil {
			return nil, nil, unclear(fmt.Errorf("update goods %s: %w", goodsID, err))
		}
		if n == 1 {
			s.cfg.Forget()
			g, err = s.cfg.Sales.GoodsByID(ctx, goodsID)
			return g, nil, err
		}
	}
	return nil, conflict("goodsId"), nil
}

func (s *Service) updateGoods(ctx context.Context, by sale.Actor, g *sale.Goods, d GoodsDraft) (n int, err error) {
	err = s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Goods.Update().Where(entgoods.ID(g.ID), entgoods.Revision(g.Revision)).SetRevision(g.Revision + 1).
			SetName(d.Name).SetDescription(d.Description).SetListPriceMinor(d.ListPrice.Minor).SetChangedBy(by.ID)
		if d.ImageURL == nil {
			update.ClearImageURL()
		} else {
			update.SetImageURL(*d.ImageURL)
		}
		n, err = update.Save(ctx)
		return err
	})
	return n, err
}

// staff lets operators and administrators through.
func staff(by sale.Actor) error {
	if by.Clock() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	if !by.Role.AtLeast(auth.Operator) {
		return fault.New(fault.Forbidden, "Your role does not allow this.")
	}
	return nil
}
