package seed

import (
	"context"
	"fmt"
	"strings"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

const currency = "CNY"

// goodsDraft is a product to be created.
type goodsDraft struct {
	id          id.Goods // zero until created
	name        string
	description string
	picture     string // name of a file of the folder pictures, without extension
	priceMinor  int64  // regular price, in fen
}

// saleDraft is a sale to be created, approved and with its times.
type saleDraft struct {
	title, rules  string
	opens, closes time.Time
	limit         int // units of an item per buyer
	saleLimit     int // units of all items per buyer; 0 = no limit
	paymentWindow time.Duration
	items         []itemDraft
	permitRatio   float64 // 0 = the server's default
}

type itemDraft struct {
	goods      *goodsDraft
	priceMinor int64
	stock      int
}

type madeSale struct {
	sale  id.Sale
	items []id.Item
	slug  string
	tag   string // short and unique, for names
}

// createSale writes a sale with its items and missing products, in one transaction. The
// stock of each item enters the ledger as OPEN.
func (s *Seeder) createSale(ctx context.Context, now time.Time, d saleDraft) (madeSale, error) {
	made := madeSale{sale: id.Sale(s.NewID())}
	var fresh []*goodsDraft
	for _, item := range d.items {
		made.items = append(made.items, id.Item(s.NewID()))
		if item.goods.id.IsZero() {
			item.goods.id = id.Goods(s.NewID())
			fresh = append(fresh, item.goods)
		}
	}
	made.tag = tag(made.sale)
	made.slug = strings.TrimPrefix(slugOf(d.title)+"-"+made.tag, "-") // a Chinese title has no part for it
	err := s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := createGoods(ctx, tx, now, fresh); err != nil {
			return err
		}
		create := tx.Sale.Create()
		if d.saleLimit > 0 {
			create.SetTotalLimit(d.saleLimit)
		}
		if d.permitRatio > 0 {
			create.SetPermitPerMille(int(d.permitRatio*1000 + 0.5))
		}
		err := create.SetID(made.sale).SetSlug(made.slug).SetTitle(d.title).SetRules(d.rules).
			SetStatus(entsale.StatusSCHEDULED).SetStartsAt(d.opens).SetEndsAt(d.closes).SetPreheatAt(now).
			SetPaymentWindowSeconds(int(d.paymentWindow / time.Second)).SetPurchaseLimit(d.limit).
			SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write the sale: %w", err)
		}
		if err := s.createItems(ctx, tx, now, made, d); err != nil {
			return err
		}
		return approve(ctx, tx, now, made.sale)
	})
	return made, err
}

// tag is the end of the public id of a sale.
func tag(of id.Sale) string {
	public := of.Public()
	return public[len(public)-10:]
}

// approve stores what buyers see of a sale as approved, by no user.
func approve(ctx context.Context, tx *ent.Tx, now time.Time, of id.Sale) error {
	v, err := sale.NewStore(tx.Client()).ByID(ctx, of)
	if err != nil {
		return err
	}
	terms, _, err := sale.TermsOf(v).JSON()
	if err != nil {
		return err
	}
	return sale.WriteApproval(ctx, tx, of, id.User{}, terms, now)
}

func createGoods(ctx context.Context, tx *ent.Tx, now time.Time, fresh []*goodsDraft) error {
	for _, g := range fresh {
		err := tx.Goods.Create().SetID(g.id).SetName(g.name).SetDescription(g.description).
			SetImageURL(picture(g.picture)).SetListPriceMinor(g.priceMinor).SetCurrency(currency).
			SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write goods: %w", err)
		}
	}
	return nil
}

func (s *Seeder) createItems(ctx context.Context, tx *ent.Tx, now time.Time, made madeSale, d saleDraft) error {
	for i, item := range d.items {
		err := tx.SaleItem.Create().SetID(made.items[i]).SetSaleID(made.sale).SetGoodsID(item.goods.id).SetPosition(i).
			SetPriceMinor(item.priceMinor).SetCurrency(currency).SetPurchaseLimit(d.limit).SetTotal(item.stock).
			SetAvailable(item.stock).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write the item: %w", err)
		}
		err = tx.StockMovement.Create().SetID(s.NewID()).SetOrderID(made.items[i].UUID()).SetItemID(made.items[i]).
			SetKind(stockmovement.KindOPEN).SetQuantity(item.stock).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write the opening stock: %w", err)
		}
	}
	return nil
}

// slugOf converts a title into a part of a URL.
func slugOf(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}
