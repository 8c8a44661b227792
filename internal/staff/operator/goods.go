package operator

import (
	"context"
	"fmt"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/typed"
)

// GoodsDraft is a product as input by an operator.
type GoodsDraft struct {
	Name        string
	Description string
	ImageURL    *string // nil = no picture
	ImageAlt    string  // alternative text of the picture; "" = none
	ListPrice   money.Amount
	ExternalID  string // id in another system; "" = none
	SKU         string // stock keeping unit; "" = none
}

func (d *GoodsDraft) check() error {
	return fault.All(
		line(&d.Name, "name"),
		optional(&d.Description, maxText, "description"),
		checkImageURL(d.ImageURL, "imageUrl"),
		optional(&d.ImageAlt, maxImageAlt, "imageAlt"),
		checkPrice(d.ListPrice, "listPrice"),
		checkExternal(&d.ExternalID, "externalId"),
		checkExternal(&d.SKU, "sku"),
	)
}

// CheckGoods returns all faults of a product that is to be created.
func (*Service) CheckGoods(_ context.Context, d GoodsDraft) error { return d.check() }

// CreateGoods creates a product.
func (s *Service) CreateGoods(ctx context.Context, by sale.Actor, d GoodsDraft) (*sale.Goods, error) {
	if err := requireStaff(by); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	goodsID := id.Goods(s.cfg.NewID())
	err := s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Goods.Create().SetID(goodsID).SetName(d.Name).SetDescription(d.Description).SetNillableImageURL(d.ImageURL).
			SetNillableImageAlt(unlessZero(d.ImageAlt)).SetListPriceMinor(d.ListPrice.Minor).SetCurrency(d.ListPrice.Currency).
			SetNillableExternalID(unlessZero(d.ExternalID)).SetNillableSku(unlessZero(d.SKU)).
			SetChangedBy(by.ID).SetCreatedAt(s.cfg.Clock.Now()).Exec(ctx)
		if err != nil {
			return err
		}
		return s.logGoods(ctx, tx, sale.GoodsLine{Goods: goodsID, Actor: by.ID, Act: sale.ActCreate, Revision: 1})
	})
	if err != nil {
		return nil, unknownOutcome(fmt.Errorf("create goods: %w", err))
	}
	s.forgetCatalog()
	return s.cfg.Sales.GoodsByID(ctx, goodsID)
}

// GoodsPatch holds the changes of a product; nil leaves a field unchanged.
type GoodsPatch struct {
	Name        *string
	Description *string
	ImageURL    **string // nil inside = remove the picture
	ImageAlt    *string  // "" inside = remove it
	ListPrice   *money.Amount
	ExternalID  *string
	SKU         *string // "" inside = remove it
	Note        string  // the reason
}

func (p GoodsPatch) of(g *sale.Goods) GoodsDraft {
	d := GoodsDraft{Name: g.Name, Description: g.Description, ImageURL: g.ImageURL, ImageAlt: g.ImageAlt, ListPrice: g.ListPrice, ExternalID: g.ExternalID, SKU: g.SKU}
	set(&d.Name, p.Name)
	set(&d.Description, p.Description)
	set(&d.ImageURL, p.ImageURL)
	set(&d.ImageAlt, p.ImageAlt)
	set(&d.ListPrice, p.ListPrice)
	set(&d.ExternalID, p.ExternalID)
	set(&d.SKU, p.SKU)
	return d
}

// check returns all faults of the patch of a product, applied to it.
func (p GoodsPatch) check(d *GoodsDraft, g *sale.Goods) error {
	var currency error
	if d.ListPrice.Currency != g.ListPrice.Currency {
		currency = invalid(fault.Rule{Code: "the currency stays " + g.ListPrice.Currency}, "listPrice", "currencyCode")
	}
	return fault.All(d.check(), currency, optional(&p.Note, maxNote, "note"))
}

// CheckGoodsUpdate returns all faults of a change of a product.
func (s *Service) CheckGoodsUpdate(ctx context.Context, goodsID id.Goods, p GoodsPatch) error {
	g, err := s.cfg.Sales.GoodsByID(ctx, goodsID)
	if err != nil {
		return err
	}
	if g == nil {
		return unknown("goodsId")
	}
	d := p.of(g)
	return p.check(&d, g)
}

// set assigns a value unless it is nil.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// UpdateGoods changes a product. Its currency cannot change. A patch without changes does
// nothing.
func (s *Service) UpdateGoods(ctx context.Context, by sale.Actor, goodsID id.Goods, p GoodsPatch) (*sale.Goods, error) {
	p.Note = typed.Text(p.Note)
	if err := requireStaff(by); err != nil {
		return nil, err
	}
	for range maxTries {
		g, err := s.cfg.Sales.GoodsByID(ctx, goodsID)
		if err != nil {
			return nil, err
		}
		if g == nil {
			return nil, unknown("goodsId")
		}
		d := p.of(g)
		if err := p.check(&d, g); err != nil {
			return g, err
		}
		changed := d.changes(GoodsPatch{}.of(g))
		if len(changed) == 0 {
			return g, nil
		}
		line := sale.GoodsLine{Goods: goodsID, Actor: by.ID, Act: sale.ActUpdate, Revision: g.Revision + 1, Note: p.Note}
		if line.Details, err = detailsOf(changed); err != nil {
			return nil, err
		}
		n, err := s.updateGoods(ctx, line, g, d)
		if err != nil {
			return nil, unknownOutcome(fmt.Errorf("update goods %s: %w", goodsID, err))
		}
		if n == 1 {
			s.forgetCatalog()
			return s.cfg.Sales.GoodsByID(ctx, goodsID)
		}
	}
	return nil, conflict("goodsId")
}

func (s *Service) updateGoods(ctx context.Context, line sale.GoodsLine, g *sale.Goods, d GoodsDraft) (n int, err error) {
	err = s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Goods.Update().Where(entgoods.ID(g.ID), entgoods.Revision(g.Revision)).SetRevision(g.Revision + 1).
			SetName(d.Name).SetDescription(d.Description).SetListPriceMinor(d.ListPrice.Minor).SetChangedBy(line.Actor)
		if d.ExternalID != "" {
			update.SetExternalID(d.ExternalID)
		}
		if d.SKU == "" {
			update.ClearSku()
		} else {
			update.SetSku(d.SKU)
		}
		if d.ImageURL == nil {
			update.ClearImageURL()
		} else {
			update.SetImageURL(*d.ImageURL)
		}
		if d.ImageAlt == "" {
			update.ClearImageAlt()
		} else {
			update.SetImageAlt(d.ImageAlt)
		}
		if n, err = update.Save(ctx); err != nil || n == 0 {
			return err
		}
		return s.logGoods(ctx, tx, line)
	})
	return n, err
}

// logGoods writes an entry of a product's log in the caller's transaction.
func (s *Service) logGoods(ctx context.Context, tx *ent.Tx, line sale.GoodsLine) error {
	return tx.GoodsLog.Create().SetID(s.cfg.NewID()).SetGoodsID(line.Goods).SetActorID(line.Actor).SetAct(string(line.Act)).
		SetRevision(line.Revision).SetNote(line.Note).SetDetails(line.Details).SetCreatedAt(s.cfg.Clock.Now()).Exec(ctx)
}

// requireStaff requires an operator or administrator.
func requireStaff(by sale.Actor) error {
	if by.Clock() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	if !by.Role.AtLeast(auth.Operator) {
		return fault.New(fault.Forbidden, "Your role does not allow this.")
	}
	return nil
}
