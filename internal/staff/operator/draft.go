package operator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/ent/saleitem"
	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// preheatBefore is the default time before its start at which a sale is loaded.
const preheatBefore = 10 * time.Minute

// ItemDraft is one product in a sale, as input by an operator.
type ItemDraft struct {
	Goods id.Goods
	// External is the id of the product in another system, instead of Goods; "" = none. Templates
	// keep the product itself.
	External string `json:"-"`
	// Ambiguous is whether the input names the product by both ids or by none.
	Ambiguous bool `json:"-"`
	Price     money.Amount
	Stock     int
	// PurchaseLimit is the most units per buyer; 0 = that of the sale, or 1 without one.
	PurchaseLimit int
}

// SaleDraft is a sale as input by an operator.
type SaleDraft struct {
	Title           string
	Slug            string // "" = generated from the title
	Reference       string // id in another system, which only a new sale takes; "" = none
	Rules           string
	StartsAt        time.Time
	EndsAt          time.Time
	PaymentWindow   time.Duration // 0 = that of the installation
	PurchaseLimit   int           // units per buyer over all items; 0 = no limit
	HideExactStock  bool
	Private         bool `json:",omitempty"`
	RequiresAddress bool
	Requires        sale.Requirements
	LimitBy         *sale.LimitBy // nil = sale.DefaultLimitBy
	Access          *access.Rules // nil = everyone from the opening on
	Draw            sale.DrawRules
	Accent          string // #rrggbb; "" = that of the installation
	Items           []ItemDraft
	Switches        *sale.Switches // which only a new sale takes; nil = the defaults
}

// setDefaults sets the payment window of a sale, and the purchase limit of items, without
// one.
func (d *SaleDraft) setDefaults(window time.Duration) {
	if d.PaymentWindow == 0 {
		d.PaymentWindow = window
	}
	for i := range d.Items {
		if d.Items[i].PurchaseLimit == 0 {
			d.Items[i].PurchaseLimit = max(1, min(d.PurchaseLimit, maxLimit, d.Items[i].Stock))
		}
	}
}

// limitBy returns what the limits of the sale count.
func (d *SaleDraft) limitBy() sale.LimitBy { return *cmp.Or(d.LimitBy, &sale.DefaultLimitBy) }

// rules returns the access rules of the sale.
func (d *SaleDraft) rules() access.Rules {
	if d.Access == nil {
		return nil
	}
	return *d.Access
}

// largestLimit returns the largest purchase limit of the items, which release 0.1 reads.
func (d *SaleDraft) largestLimit() int {
	largest := 1
	for _, item := range d.Items {
		largest = max(largest, item.PurchaseLimit)
	}
	return largest
}

func unlessZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// terms are what a draft is checked against.
type terms struct {
	after    time.Time     // the start must be later; zero for times that an edit leaves as they are
	window   time.Duration // the payment window of the installation
	products map[id.Goods]*sale.Goods
}

// clean puts the texts of a draft into the form in which they are stored, and returns their
// faults.
func (d *SaleDraft) clean() error {
	return fault.All(
		line(&d.Title, "title"),
		optional(&d.Rules, maxText, "rules"),
		checkSlug(&d.Slug),
		checkAccent(&d.Accent),
		cleanAccess(d.rules()),
		checkExternal(&d.Reference, "externalReference"),
	)
}

// check returns all faults of a draft.
func (d *SaleDraft) check(usual terms) error {
	faults := []error{
		d.clean(),
		checkTimes(d.StartsAt, d.EndsAt, usual.after),
		checkWindow(d.PaymentWindow, usual.window),
		inRange(len(d.Items), 1, maxItems, "items"),
	}
	most, seen := 0, map[id.Goods]bool{}
	for i, item := range d.Items[:min(len(d.Items), maxItems)] {
		at := func(field ...string) []string { return append([]string{"items", strconv.Itoa(i)}, field...) }
		faults = append(faults, item.check(at, usual.products[item.Goods]))
		if first := d.Items[0].Price.Currency; first != "" && item.Price.Currency != "" && item.Price.Currency != first {
			faults = append(faults, invalid(fault.OneCurrency, at("price", "currencyCode")...))
		}
		if seen[item.Goods] && usual.products[item.Goods] != nil {
			faults = append(faults, invalid(fault.EachGoodsOnce, at(item.goodsField())...))
		}
		seen[item.Goods] = true
		most += min(item.PurchaseLimit, item.Stock)
	}
	if fault.All(faults...) != nil || d.PurchaseLimit < 0 {
		most = maxItems * maxLimit
	}
	if d.limitBy().Address && !d.RequiresAddress {
		faults = append(faults, invalid(fault.NeedsAddress, "limitBy"))
	}
	stock := math.MaxInt
	for _, item := range d.Items {
		stock = min(stock, item.Stock)
	}
	faults = append(faults, checkAccess(d.rules(), d.EndsAt.Sub(d.StartsAt), stock),
		checkPrivate(d.Private, d.rules()), checkDraw(d.Draw, d.EndsAt.Sub(d.StartsAt)))
	if d.Draw.On() && d.rules().Kept() > 0 { // its offers follow the numbers alone
		faults = append(faults, invalid(fault.Rule{Code: "no keepUnits in a draw"}, "access"))
	}
	return fault.All(append(faults, inRange(d.PurchaseLimit, 0, most, "purchaseLimit"))...)
}

// check returns the faults of an item of a product; nil = there is no such product.
func (d ItemDraft) check(at func(field ...string) []string, product *sale.Goods) error {
	var there error
	price := checkPrice(d.Price, at("price")...)
	switch {
	case d.Ambiguous:
		there = invalid(fault.OneGoodsID, at("goodsId")...)
	case product == nil:
		there = unknown(at(d.goodsField())...)
	case price == nil && d.Price.Currency == product.ListPrice.Currency && d.Price.Minor > product.ListPrice.Minor:
		price = invalid(fault.Rule{Code: fault.MaxCode, Bound: product.ListPrice.Decimal()}, at("price")...)
	}
	stock := inRange(d.Stock, 1, maxUnits, at("stock")...)
	most := maxLimit
	if stock == nil {
		most = min(maxLimit, d.Stock)
	}
	return fault.All(there, price, stock, inRange(d.PurchaseLimit, 1, most, at("purchaseLimit")...))
}

// equal reports whether two items are the same, by whatever id they name the product.
func (d ItemDraft) equal(e ItemDraft) bool {
	d.External, e.External = "", ""
	return d == e
}

// goodsField returns the field of the input that names the product.
func (d ItemDraft) goodsField() string {
	if d.External != "" {
		return "goodsExternalId"
	}
	return "goodsId"
}

// products returns the products of a draft, by id, without those that do not exist.
func (s *Service) products(ctx context.Context, d SaleDraft) (map[id.Goods]*sale.Goods, error) {
	found := make(map[id.Goods]*sale.Goods, len(d.Items))
	for _, item := range d.Items[:min(len(d.Items), maxItems)] {
		g, err := s.cfg.Sales.GoodsByID(ctx, item.Goods)
		if err != nil {
			return nil, err
		}
		if g != nil {
			found[item.Goods] = g
		}
	}
	return found, nil
}

// identify returns the items with the ids of the products that they name by an id of another
// system. An item of which there is no product keeps none, which check refuses.
func (s *Service) identify(ctx context.Context, items []ItemDraft) ([]ItemDraft, error) {
	items = slices.Clone(items) // of the input, which is checked before it is used
	for i := range items[:min(len(items), maxItems)] {
		if items[i].External == "" {
			continue
		}
		g, err := s.cfg.Sales.GoodsByExternalID(ctx, typed.Identifier(items[i].External))
		if err != nil {
			return nil, err
		}
		if g != nil {
			items[i].Goods = g.ID
		}
	}
	return items, nil
}

// CheckSale returns all faults of a draft that is to be created.
func (s *Service) CheckSale(ctx context.Context, d SaleDraft) error {
	d.setDefaults(s.cfg.PaymentWindow)
	return s.checkDraft(ctx, &d, s.cfg.Clock.Now())
}

func (s *Service) checkDraft(ctx context.Context, d *SaleDraft, after time.Time) (err error) {
	if d.Items, err = s.identify(ctx, d.Items); err != nil {
		return err
	}
	products, err := s.products(ctx, *d)
	if err != nil {
		return err
	}
	return fault.All(d.check(terms{after: after, window: s.cfg.PaymentWindow, products: products}),
		s.cfg.Payments.CheckDraw(d.Draw))
}

// CreateSale creates a sale as a draft.
func (s *Service) CreateSale(ctx context.Context, by sale.Actor, d SaleDraft) (*sale.Sale, error) {
	if err := authorise(by, sale.ActCreate); err != nil {
		return nil, err
	}
	d.setDefaults(s.cfg.PaymentWindow)
	if err := s.checkDraft(ctx, &d, s.cfg.Clock.Now()); err != nil {
		return nil, err
	}
	saleID := id.Sale(s.cfg.NewID())
	given := d.Slug != ""
	if !given {
		public := saleID.Public()
		d.Slug = strings.Trim(slugOf(d.Title)+"-"+public[len(public)-slugTag:], "-")
	}
	c := sale.Change{
		ID: s.cfg.NewID(), Sale: saleID, Act: sale.ActCreate, From: sale.Draft, To: sale.Draft, By: by, At: s.cfg.Clock.Now(),
	}
	err := s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.Sale.Create().SetID(saleID).SetSlug(d.Slug).SetTitle(d.Title).SetRules(d.Rules).
			SetNillableExternalReference(unlessZero(d.Reference)).
			SetStartsAt(d.StartsAt).SetEndsAt(d.EndsAt).SetPreheatAt(d.StartsAt.Add(-preheatBefore)).
			SetPaymentWindowSeconds(int(d.PaymentWindow / time.Second)).SetPurchaseLimit(d.largestLimit()).
			SetNillableTotalLimit(unlessZero(d.PurchaseLimit)).
			SetHideExactStock(d.HideExactStock).SetPrivate(d.Private).SetRequiresAddress(d.RequiresAddress).
			SetRequiresVerifiedContact(d.Requires.VerifiedContact).SetMinimumAccountAgeHours(d.accountAge()).
			SetLimitBy(d.limitBy().String()).SetAccess(d.rules().JSON()).SetAccent(d.Accent).SetCreatedBy(by.ID).
			SetEntrySeconds(d.Draw.EntrySeconds).SetOfferSeconds(d.Draw.OfferSeconds).
			SetAuthorizeEntries(d.Draw.Authorize).SetCreatedAt(c.At)
		if d.Switches != nil {
			setSwitches(create.Mutation(), *d.Switches)
		}
		if err := create.Exec(ctx); err != nil {
			return err
		}
		if err := s.writeItems(ctx, tx, saleID, d.Items); err != nil {
			return err
		}
		return sale.LogCreation(ctx, tx, c)
	})
	if err := draftOutcome(err); err != nil {
		return nil, err
	}
	s.forgetCatalog()
	s.publish(ctx, c.Line())
	return s.cfg.Sales.ByID(ctx, saleID)
}

// draftOutcome converts the error of writing a draft.
func draftOutcome(err error) error {
	if postgres.IsUnique(err) {
		return conflict("slug")
	}
	if err != nil {
		return unknownOutcome(fmt.Errorf("write sale: %w", err))
	}
	return nil
}

// writeItems replaces the items of a draft. Their stock enters the ledger when the sale
// is approved.
func (s *Service) writeItems(ctx context.Context, tx *ent.Tx, saleID id.Sale, items []ItemDraft) error {
	if _, err := tx.SaleItem.Delete().Where(saleitem.SaleID(saleID)).Exec(ctx); err != nil {
		return err
	}
	for i, item := range items {
		there, err := tx.Goods.Query().Where(entgoods.ID(item.Goods)).Exist(ctx)
		if err != nil {
			return err
		}
		if !there {
			return unknown("items", strconv.Itoa(i), "goodsId")
		}
		err = tx.SaleItem.Create().SetID(id.Item(s.cfg.NewID())).SetSaleID(saleID).SetGoodsID(item.Goods).SetPosition(i).
			SetPriceMinor(item.Price.Minor).SetCurrency(item.Price.Currency).
			SetPurchaseLimit(item.PurchaseLimit).SetTotal(item.Stock).SetAvailable(item.Stock).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// SalePatch holds the changes of a draft; nil leaves a field unchanged.
type SalePatch struct {
	Title           *string
	Slug            *string
	Rules           *string
	StartsAt        *time.Time
	EndsAt          *time.Time
	PaymentWindow   *time.Duration
	PurchaseLimit   *int // 0 = no limit
	HideExactStock  *bool
	Private         *bool
	RequiresAddress *bool
	VerifiedContact *bool
	AccountAge      *time.Duration
	LimitBy         *sale.LimitBy
	Access          *access.Rules
	Draw            *sale.DrawRules // zero = a rush
	Accent          *string         // "" = that of the installation
	Items           []ItemDraft     // nil = unchanged
	Note            string          // the reason
}

func (p SalePatch) of(v *sale.Sale) SaleDraft {
	d := SaleDraft{
		Title: v.Title, Slug: v.Slug, Rules: v.Rules, StartsAt: v.StartsAt, EndsAt: v.EndsAt,
		PaymentWindow: v.PaymentWindow, PurchaseLimit: v.PurchaseLimit, HideExactStock: v.HideExactStock,
		Private: v.Private, RequiresAddress: v.RequiresAddress, Requires: v.Requires, LimitBy: cmp.Or(p.LimitBy, &v.LimitBy),
		Access: cmp.Or(p.Access, &v.Access),
		Draw:   v.Draw, Accent: v.Accent.Color, Items: p.Items,
	}
	set(&d.Title, p.Title)
	set(&d.Slug, p.Slug)
	set(&d.Rules, p.Rules)
	set(&d.StartsAt, p.StartsAt)
	set(&d.EndsAt, p.EndsAt)
	set(&d.PaymentWindow, p.PaymentWindow)
	set(&d.PurchaseLimit, p.PurchaseLimit)
	set(&d.HideExactStock, p.HideExactStock)
	set(&d.Private, p.Private)
	set(&d.RequiresAddress, p.RequiresAddress)
	set(&d.Requires.VerifiedContact, p.VerifiedContact)
	set(&d.Requires.AccountAge, p.AccountAge)
	set(&d.Draw, p.Draw)
	set(&d.Accent, p.Accent)
	d.Accent = strings.ToLower(d.Accent) // as it is stored
	if p.Items == nil {
		for _, item := range v.Items {
			d.Items = append(d.Items, ItemDraft{Goods: item.Goods.ID, Price: item.Price, Stock: item.Total,
				PurchaseLimit: item.PurchaseLimit})
		}
	}
	d.setDefaults(v.PaymentWindow)
	return d
}

// after returns the time after which the sale must start: now, or zero when the patch
// leaves its times unchanged.
func (p SalePatch) after(now time.Time) time.Time {
	if p.StartsAt == nil && p.EndsAt == nil {
		return time.Time{}
	}
	return now
}

// CheckSaleUpdate returns all faults of a change of a draft.
func (s *Service) CheckSaleUpdate(ctx context.Context, saleID id.Sale, p SalePatch) error {
	v, err := s.cfg.Sales.ByID(ctx, saleID)
	if err != nil {
		return err
	}
	if v == nil {
		return unknown("saleId")
	}
	d := p.of(v)
	return fault.All(optional(&p.Note, maxNote, "note"), s.checkDraft(ctx, &d, p.after(s.cfg.Clock.Now())))
}

// UpdateSale changes a draft, or a rejected sale, which becomes a draft again. Of a sale
// that was approved, only title, rules and accent change; all but the accent need a second person.
func (s *Service) UpdateSale(ctx context.Context, by sale.Actor, saleID id.Sale, p SalePatch) (Changed, error) {
	p.Note = typed.Text(p.Note)
	v, err := s.cfg.Sales.ByID(ctx, saleID)
	if err != nil {
		return Changed{}, err
	}
	if v != nil && len(sale.Targets(sale.ActDescribe, v.Status)) > 0 {
		return s.describe(ctx, by, saleID, p, nil)
	}
	v, err = s.updateDraft(ctx, by, saleID, p)
	return Changed{Sale: v}, err
}

func (s *Service) updateDraft(ctx context.Context, by sale.Actor, saleID id.Sale, p SalePatch) (*sale.Sale, error) {
	var d SaleDraft
	var changed changes
	v, err := s.do(ctx, act{
		by: by, sale: saleID, what: sale.ActUpdate, note: p.Note, details: &changed,
		decide: func(v *sale.Sale) (sale.Status, error) {
			d = p.of(v)
			if d.Slug == "" {
				d.Slug = v.Slug
			}
			faults := fault.All(optional(&p.Note, maxNote, "note"), s.checkDraft(ctx, &d, p.after(s.cfg.Clock.Now())))
			changed = d.changes(SalePatch{}.of(v))
			return sale.Draft, faults
		},
		set: func(u *ent.SaleUpdate) {
			u.SetTitle(d.Title).SetSlug(d.Slug).SetRules(d.Rules).SetStartsAt(d.StartsAt).SetEndsAt(d.EndsAt).
				SetPreheatAt(d.StartsAt.Add(-preheatBefore)).SetPaymentWindowSeconds(int(d.PaymentWindow / time.Second)).
				SetPurchaseLimit(d.largestLimit()).SetHideExactStock(d.HideExactStock).SetPrivate(d.Private).
				SetRequiresAddress(d.RequiresAddress).
				SetRequiresVerifiedContact(d.Requires.VerifiedContact).SetMinimumAccountAgeHours(d.accountAge()).
				SetLimitBy(d.limitBy().String()).SetAccess(d.rules().JSON()).SetAccent(d.Accent).
				SetEntrySeconds(d.Draw.EntrySeconds).SetOfferSeconds(d.Draw.OfferSeconds).
				SetAuthorizeEntries(d.Draw.Authorize)
			if d.PurchaseLimit > 0 {
				u.SetTotalLimit(d.PurchaseLimit)
			} else {
				u.ClearTotalLimit()
			}
		},
		within: func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) error {
			if p.Items == nil {
				return nil
			}
			return s.writeItems(ctx, tx, saleID, d.Items)
		},
	})
	if err != nil {
		err = draftOutcome(err)
	}
	return v, err
}
