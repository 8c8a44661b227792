package operator

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/ent/saleitem"
	"seckill/internal/id"
	"seckill/internal/money"
	"seckill/internal/postgres"
	"seckill/internal/sale"
)

// preheatBefore is the default time before its start at which a sale is loaded.
const preheatBefore = 10 * time.Minute

// ItemDraft is one product in a sale, as input by an operator.
type ItemDraft struct {
	Goods uuid.UUID
	Price money.Amount
	Stock int
	// PurchaseLimit is the most units per buyer; 0 = that of the sale, or 1 without one.
	PurchaseLimit int
}

// SaleDraft is a sale as input by an operator.
type SaleDraft struct {
	Title          string
	Slug           string // "" = generated from the title
	Rules          string
	StartsAt       time.Time
	EndsAt         time.Time
	PaymentWindow  time.Duration
	PurchaseLimit  int // units per buyer over all items; 0 = no limit
	HideExactStock bool
	Items          []ItemDraft
}

// setLimits sets the purchase limit of items without one.
func (d *SaleDraft) setLimits() {
	for i := range d.Items {
		if d.Items[i].PurchaseLimit == 0 {
			d.Items[i].PurchaseLimit = min(max(1, d.PurchaseLimit), maxLimit)
		}
	}
}

// largestLimit returns the largest purchase limit of the items, which release 0.1 reads.
func (d *SaleDraft) largestLimit() int {
	largest := 1
	for _, item := range d.Items {
		largest = max(largest, item.PurchaseLimit)
	}
	return largest
}

func unlessZero(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (d *SaleDraft) check() error {
	refusal := cmp.Or(
		required(&d.Title, maxName, "title"),
		checkText(d.Rules, maxText, "rules"),
		checkTimes(d.StartsAt, d.EndsAt),
		inRange(int(d.PaymentWindow/time.Second), int(minWindow/time.Second), int(maxWindow/time.Second), "paymentWindowSeconds"),
		inRange(d.PurchaseLimit, 0, maxItems*maxLimit, "purchaseLimit"),
		inRange(len(d.Items), 1, maxItems, "items"),
	)
	if refusal == nil && d.Slug != "" && (len(d.Slug) > maxSlug || !slugFormat.MatchString(d.Slug)) {
		refusal = invalid("format: slug", "slug")
	}
	seen := map[uuid.UUID]bool{}
	for i, item := range d.Items {
		at := func(field string) []string { return []string{"items", strconv.Itoa(i), field} }
		refusal = cmp.Or(refusal,
			checkPrice(item.Price, at("price")...),
			inRange(item.Stock, 1, maxUnits, at("stock")...),
			inRange(item.PurchaseLimit, 1, maxLimit, at("purchaseLimit")...))
		if refusal == nil && item.Price.Currency != d.Items[0].Price.Currency {
			refusal = invalid("one currency in a sale", append(at("price"), "currencyCode")...)
		}
		if refusal == nil && seen[item.Goods] {
			refusal = invalid("each goods once", at("goodsId")...)
		}
		seen[item.Goods] = true
	}
	return refusal
}

// CreateSale creates a sale as a draft.
func (s *Service) CreateSale(ctx context.Context, by sale.Actor, d SaleDraft) (*sale.Sale, error) {
	if err := authorise(by, sale.ActCreate); err != nil {
		return nil, err
	}
	d.setLimits()
	if err := d.check(); err != nil {
		return nil, err
	}
	saleID := s.cfg.NewID()
	given := d.Slug != ""
	if !given {
		public := id.Format(id.Sale, saleID)
		d.Slug = strings.Trim(slugOf(d.Title)+"-"+public[len(public)-slugTag:], "-")
	}
	c := sale.Change{
		ID: s.cfg.NewID(), Sale: saleID, Act: sale.ActCreate, From: sale.Draft, To: sale.Draft, By: by, At: s.cfg.Clock.Now(),
	}
	err := s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(saleID).SetSlug(d.Slug).SetTitle(d.Title).SetRules(d.Rules).
			SetStartsAt(d.StartsAt).SetEndsAt(d.EndsAt).SetPreheatAt(d.StartsAt.Add(-preheatBefore)).
			SetPaymentWindowSeconds(int(d.PaymentWindow / time.Second)).SetPurchaseLimit(d.largestLimit()).SetNillableTotalLimit(unlessZero(d.PurchaseLimit)).
			SetHideExactStock(d.HideExactStock).SetCreatedBy(by.ID).SetCreatedAt(c.At).Exec(ctx)
		if err != nil {
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
func (s *Service) writeItems(ctx context.Context, tx *ent.Tx, saleID uuid.UUID, items []ItemDraft) error {
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
		err = tx.SaleItem.Create().SetID(s.cfg.NewID()).SetSaleID(saleID).SetGoodsID(item.Goods).SetPosition(i).
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
	Title          *string
	Slug           *string
	Rules          *string
	StartsAt       *time.Time
	EndsAt         *time.Time
	PaymentWindow  *time.Duration
	PurchaseLimit  *int // 0 = no limit
	HideExactStock *bool
	Items          []ItemDraft // nil = unchanged
	Note           string      // the reason
}

func (p SalePatch) of(v *sale.Sale) SaleDraft {
	d := SaleDraft{
		Title: v.Title, Slug: v.Slug, Rules: v.Rules, StartsAt: v.StartsAt, EndsAt: v.EndsAt,
		PaymentWindow: v.PaymentWindow, PurchaseLimit: v.PurchaseLimit, HideExactStock: v.HideExactStock, Items: p.Items,
	}
	set(&d.Title, p.Title)
	set(&d.Slug, p.Slug)
	set(&d.Rules, p.Rules)
	set(&d.StartsAt, p.StartsAt)
	set(&d.EndsAt, p.EndsAt)
	set(&d.PaymentWindow, p.PaymentWindow)
	set(&d.PurchaseLimit, p.PurchaseLimit)
	set(&d.HideExactStock, p.HideExactStock)
	if p.Items == nil {
		for _, item := range v.Items {
			d.Items = append(d.Items, ItemDraft{Goods: item.Goods.ID, Price: item.Price, Stock: item.Total, PurchaseLimit: item.PurchaseLimit})
		}
	}
	d.setLimits()
	return d
}

// UpdateSale changes a draft, or a rejected sale, which becomes a draft again.
func (s *Service) UpdateSale(ctx context.Context, by sale.Actor, saleID uuid.UUID, p SalePatch) (*sale.Sale, error) {
	if err := checkText(p.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	var d SaleDraft
	var changed changes
	v, err := s.do(ctx, act{
		by: by, sale: saleID, what: sale.ActUpdate, note: p.Note, details: &changed,
		decide: func(v *sale.Sale) (sale.Status, error) {
			d = p.of(v)
			if d.Slug == "" {
				d.Slug = v.Slug
			}
			changed = d.changes(SalePatch{}.of(v))
			return sale.Draft, d.check()
		},
		set: func(u *ent.SaleUpdate) {
			u.SetTitle(d.Title).SetSlug(d.Slug).SetRules(d.Rules).SetStartsAt(d.StartsAt).SetEndsAt(d.EndsAt).
				SetPreheatAt(d.StartsAt.Add(-preheatBefore)).SetPaymentWindowSeconds(int(d.PaymentWindow / time.Second)).
				SetPurchaseLimit(d.largestLimit()).SetHideExactStock(d.HideExactStock)
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
