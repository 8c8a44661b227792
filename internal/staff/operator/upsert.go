package operator

import (
	"context"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// UpsertGoods creates the product with an id of another system, or makes it equal to the
// draft. Repeated and concurrent calls have one product, and change it once. link is a
// product without such an id that gets it; Nil = none.
// Refusals: INVALID_INPUT; NOT_FOUND for link; CONFLICT when link has another id already.
func (s *Service) UpsertGoods(ctx context.Context, by sale.Actor, link id.Goods, d GoodsDraft) (g ChangedGoods,
	created bool, err error) {
	if d.ExternalID = typed.Identifier(d.ExternalID); d.ExternalID == "" {
		return g, false, invalid(fault.NotEmpty, "externalId")
	}
	for range maxTries {
		known, err := s.upsertTarget(ctx, link, d.ExternalID)
		switch {
		case err != nil:
			return g, false, err
		case known == nil:
			g.Goods, err = s.CreateGoods(ctx, by, d)
			created = true
		default:
			g, err = s.UpdateGoods(ctx, by, known.ID, GoodsPatch{
				Name: &d.Name, Description: &d.Description, ImageURL: &d.ImageURL, ImageAlt: &d.ImageAlt,
				ListPrice: &d.ListPrice, ExternalID: &d.ExternalID, SKU: &d.SKU,
			})
			created = false
		}
		if !postgres.IsUnique(err) {
			return g, created && err == nil, err
		}
		// Another call was first: the product is there now.
	}
	return g, false, conflict("externalId")
}

// GoodsByExternalID returns the product with an id of another system, or nil.
func (s *Service) GoodsByExternalID(ctx context.Context, externalID string) (*sale.Goods, error) {
	return s.cfg.Sales.GoodsByExternalID(ctx, typed.Identifier(externalID))
}

// upsertTarget returns the product that UpsertGoods changes; nil = it creates one.
func (s *Service) upsertTarget(ctx context.Context, link id.Goods, externalID string) (*sale.Goods, error) {
	known, err := s.cfg.Sales.GoodsByExternalID(ctx, externalID)
	if err != nil || link.IsZero() || (known != nil && known.ID == link) {
		return known, err
	}
	g, err := s.cfg.Sales.GoodsByID(ctx, link)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, unknown("goodsId")
	case known != nil || g.ExternalID != "":
		return nil, conflict("goodsId")
	}
	return g, nil
}

// UpsertSale creates the sale with an id of another system as a draft, or makes the draft
// equal to d. A call that changes nothing succeeds in every state of the sale.
// Refusals: those of CreateSale and UpdateSale.
func (s *Service) UpsertSale(ctx context.Context, by sale.Actor, d SaleDraft) (done Changed, created bool, err error) {
	if d.Reference = typed.Identifier(d.Reference); d.Reference == "" {
		return done, false, invalid(fault.NotEmpty, "externalReference")
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByReference(ctx, d.Reference)
		switch {
		case err != nil:
			return done, false, err
		case v != nil:
			done, err = s.equalise(ctx, by, v, d)
			return done, false, err
		}
		v, err = s.CreateSale(ctx, by, d)
		if fault.ReasonOf(err) != fault.Conflict {
			return Changed{Sale: v}, err == nil, err
		}
		if v, readErr := s.cfg.Sales.ByReference(ctx, d.Reference); v == nil || readErr != nil {
			return done, false, err // the slug is another sale's
		}
	}
	return done, false, conflict("externalReference")
}

// equalise makes a draft equal to d.
func (s *Service) equalise(ctx context.Context, by sale.Actor, v *sale.Sale, d SaleDraft) (Changed, error) {
	if err := authorise(by, sale.ActUpdate); err != nil {
		return Changed{}, err
	}
	if err := d.clean(); err != nil {
		return Changed{}, err
	}
	var err error
	if d.Items, err = s.identify(ctx, d.Items); err != nil {
		return Changed{}, err
	}
	p := d.patch()
	if len(p.of(v).changes(SalePatch{}.of(v))) == 0 {
		return Changed{Sale: v}, nil
	}
	return s.UpdateSale(ctx, by, v.ID, p)
}

// patch returns the change that makes a draft equal to d.
func (d *SaleDraft) patch() SalePatch {
	p := SalePatch{
		Title: &d.Title, Rules: &d.Rules, StartsAt: &d.StartsAt, EndsAt: &d.EndsAt, PaymentWindow: &d.PaymentWindow,
		PurchaseLimit: &d.PurchaseLimit, HideExactStock: &d.HideExactStock, Private: &d.Private,
		RequiresAddress: &d.RequiresAddress,
		VerifiedContact: &d.Requires.VerifiedContact, AccountAge: &d.Requires.AccountAge, LimitBy: d.LimitBy,
		Access: d.Access,
		Accent: &d.Accent, Items: d.Items,
	}
	if d.Slug != "" {
		p.Slug = &d.Slug
	}
	return p
}
