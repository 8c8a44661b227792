package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
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

// Goods returns a product; nil if there is none.
func (s *Service) Goods(ctx context.Context, goodsID id.Goods) (*sale.Goods, error) {
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
	d := GoodsDraft{Name: g.Name, Description: g.Description, ImageURL: g.ImageURL, ImageAlt: g.ImageAlt,
		ListPrice: g.ListPrice, ExternalID: g.ExternalID, SKU: g.SKU}
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

// ChangedGoods is the result of a change of a product: the product, and the request for
// confirmation.
type ChangedGoods struct {
	*sale.Goods
	Intervention *Intervention
}

// UpdateGoods changes a product. Its currency cannot change. A patch without changes does
// nothing. What buyers see of a product that an approved sale offers, or one that waits for
// approval, needs a second person.
func (s *Service) UpdateGoods(ctx context.Context, by sale.Actor, goodsID id.Goods, p GoodsPatch) (ChangedGoods,
	error) {
	p.Note = typed.Text(p.Note)
	if err := requireStaff(by); err != nil {
		return ChangedGoods{}, err
	}
	return s.updateGoods(ctx, by, goodsID, p, nil)
}

func (s *Service) updateGoods(ctx context.Context, by sale.Actor, goodsID id.Goods, p GoodsPatch,
	request *Intervention) (ChangedGoods, error) {
	for range maxTries {
		g, err := s.cfg.Sales.GoodsByID(ctx, goodsID)
		if err != nil {
			return ChangedGoods{}, err
		}
		if g == nil {
			return ChangedGoods{}, unknown("goodsId")
		}
		d := p.of(g)
		if err := p.check(&d, g); err != nil {
			return ChangedGoods{Goods: g}, err
		}
		changed := d.changes(GoodsPatch{}.of(g))
		if len(changed) == 0 && request == nil {
			return ChangedGoods{Goods: g}, nil
		}
		asks := storedChange{Goods: p.stored()}
		if err := asks.settle(changed, request); err != nil {
			return ChangedGoods{Goods: g}, err
		}
		w := goodsWrite{by: by, was: g, draft: d, note: p.Note, changed: changed, request: request}
		n, err := s.writeGoods(ctx, &w)
		if errors.Is(err, errNeedsSecond) {
			asked, err := s.ask(ctx, &Intervention{
				Kind: ChangeGoods, Sale: w.minding, Goods: goodsID, Note: p.Note, RequestedBy: by.ID,
			}, asks)
			return ChangedGoods{Goods: g, Intervention: asked}, err
		}
		if err != nil {
			return ChangedGoods{}, unknownOutcome(fmt.Errorf("update goods %s: %w", goodsID, err))
		}
		if n == 1 {
			s.forgetCatalog()
			for _, line := range w.lines {
				s.publish(ctx, line)
			}
			g, err := s.cfg.Sales.GoodsByID(ctx, goodsID)
			return ChangedGoods{Goods: g}, err
		}
	}
	return ChangedGoods{}, conflict("goodsId")
}

// goodsWrite is a change of a product as it was read.
type goodsWrite struct {
	by      sale.Actor
	was     *sale.Goods
	draft   GoodsDraft
	note    string
	changed changes
	request *Intervention // the confirmed one; nil = none
	// Results: a sale whose approval the change would void, and the lines in the logs of sales.
	minding id.Sale
	lines   []sale.LogLine
}

// writeGoods returns errNeedsSecond for a change that needs confirmation, and 0 when the
// product was changed meanwhile.
func (s *Service) writeGoods(ctx context.Context, w *goodsWrite) (n int, err error) {
	g, d := w.was, w.draft
	line := sale.GoodsLine{Goods: g.ID, Actor: w.by.ID, Act: sale.ActUpdate, Revision: g.Revision + 1, Note: w.note}
	if w.request != nil {
		line.Actor = w.request.RequestedBy // the logs of the sales have who confirmed
	}
	if line.Details, err = detailsOf(w.changed); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		w.lines = nil
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
		if err := s.logInSales(ctx, tx, w); err != nil {
			return err
		}
		if w.request != nil {
			if err := s.advance(ctx, tx, w.request, Done); err != nil {
				return err
			}
		}
		return s.logGoods(ctx, tx, line)
	})
	return n, err
}

// logInSales writes the change of a product into the log of each sale that offers it and is
// not over. It returns errNeedsSecond when the approval of one is about what changes. The
// product is locked: an approval waits, and finds it changed.
func (s *Service) logInSales(ctx context.Context, tx *ent.Tx, w *goodsWrite) error {
	rows, err := tx.Sale.Query().Where(
		entsale.StatusNotIn(entsale.StatusENDED, entsale.StatusCANCELLED),
		func(q *sql.Selector) {
			items := sql.Table(saleitem.Table)
			q.Where(sql.In(q.C(entsale.FieldID), sql.Select(items.C(saleitem.FieldSaleID)).From(items).
				Where(sql.EQ(items.C(saleitem.FieldGoodsID), w.was.ID))))
		},
	).Order(ent.Asc(entsale.FieldStartsAt, entsale.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("find the sales of product %s: %w", w.was.ID, err)
	}
	details := changes{"goods": w.was.ID.Public()}
	maps.Copy(details, w.changed)
	text, err := detailsOf(details)
	if err != nil {
		return err
	}
	for _, row := range rows {
		status := sale.Status(row.Status)
		if w.request == nil && w.changed.minded() && (status.Approved() || status == sale.PendingApproval) {
			w.minding = row.ID
			return errNeedsSecond
		}
		line, err := sale.LogGoods(ctx, tx, sale.Change{
			ID: s.cfg.NewID(), Sale: row.ID, From: status, Revision: row.Revision, By: w.by, Note: w.note, Details: text,
			At: s.cfg.Clock.Now(),
		})
		if err != nil {
			return err
		}
		w.lines = append(w.lines, line)
	}
	return nil
}

// logGoods writes an entry of a product's log in the caller's transaction.
func (s *Service) logGoods(ctx context.Context, tx *ent.Tx, line sale.GoodsLine) error {
	return tx.GoodsLog.Create().SetID(s.cfg.NewID()).SetGoodsID(line.Goods).SetActorID(line.Actor).
		SetAct(string(line.Act)).
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
