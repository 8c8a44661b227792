package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/goods"
	"seckill/ent/order"
	"seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/waitlistentry"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
)

// notice is a notice to one user, before the channels are known.
type notice struct {
	user    id.User
	subject uuid.UUID // the order, waitlist entry, sale or ticket of the waiting room
	kind    Kind
	content mail.Content
	until   time.Time // when it expires
}

var texts = map[Kind]mail.Kind{
	OrderPlaced: mail.OrderPlaced, PaymentDeadline: mail.PaymentDeadline, WaitlistOffer: mail.WaitlistOffer,
	Refund: mail.Refunded, SaleReminder: mail.SaleReminder, Admitted: mail.Admitted, OrderReview: mail.OrderReview,
	DrawResult: mail.DrawResult, ChargeFailed: mail.ChargeFailed,
}

func (s *Service) mail(ctx context.Context, tx *ent.Tx, n notice, to *ent.User) error {
	unsubscribe, err := s.unsubscribePath(n.user, n.kind)
	if err != nil {
		return err
	}
	n.content.Unsubscribe, n.content.Subject = unsubscribe, n.subject
	s.metrics.written.WithLabelValues(string(n.kind), string(Mail)).Inc()
	return s.cfg.Mail.Write(ctx, tx, mail.Message{
		User: n.user, To: to.Account, Kind: texts[n.kind], Language: locale.Language(to.Language), Content: n.content,
		Until: n.until,
	})
}

// describe returns the notices of subjects that still are as the kind says: an order that
// was paid meanwhile needs no notice of its deadline.
func describe(ctx context.Context, tx *ent.Tx, page mail.OrderPage, kind Kind, subjects []subject) ([]notice, error) {
	if kind == WaitlistOffer {
		return describeOffers(ctx, tx, subjects)
	}
	ids := collect.Map(subjects, func(sub subject) id.Order { return id.Order(sub.ID) })
	query := tx.Order.Query().Where(order.IDIn(ids...))
	if kind != Refund {
		query.Where(order.StatusEQ(order.StatusPENDING_PAYMENT))
	}
	switch kind {
	case PaymentDeadline, ChargeFailed: // an order under review has none
		query.Where(order.PaymentDeadlineNotNil())
	case OrderReview:
		query.Where(order.ReviewEQ(order.ReviewHELD))
	case OrderPlaced, WaitlistOffer, Refund, SaleReminder, Admitted, DrawResult:
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read orders of notices: %w", err)
	}
	orders := make(map[id.Order]*ent.Order, len(rows))
	items := make([]id.Item, 0, len(rows))
	for _, row := range rows {
		orders[row.ID] = row
		items = append(items, row.ItemID)
	}
	products, err := productsOf(ctx, tx, items)
	if err != nil {
		return nil, err
	}
	var notices []notice
	for _, sub := range subjects {
		o, known := orders[id.Order(sub.ID)]
		if !known {
			continue
		}
		amount := money.Amount{Minor: o.UnitPriceMinor * int64(o.Quantity), Currency: o.Currency}
		if kind == Refund {
			amount = money.Amount{Minor: sub.Minor, Currency: sub.Currency}
		}
		n := notice{user: sub.User, subject: sub.ID, kind: kind, content: mail.Content{
			Path:   page.Path(o.ID, o.Number),
			Notice: mail.NoticeContent{Name: products[o.ItemID].name, Number: o.Number, Amount: amount.String()},
		}}
		if kind != Refund && o.PaymentDeadline != nil {
			n.until, n.content.Notice.At = *o.PaymentDeadline, *o.PaymentDeadline
		}
		notices = append(notices, n)
	}
	return notices, nil
}

// describeOffers returns the notices of offers of the waitlist. Their link opens the sale,
// where the offer waits whether or not the tab is the one that joined.
func describeOffers(ctx context.Context, tx *ent.Tx, subjects []subject) ([]notice, error) {
	ids := collect.Map(subjects, func(sub subject) id.Waitlist { return id.Waitlist(sub.ID) })
	rows, err := tx.WaitlistEntry.Query().Where(waitlistentry.IDIn(ids...),
		waitlistentry.StatusEQ(waitlistentry.StatusOFFERED)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read offers of notices: %w", err)
	}
	items := collect.Map(rows, func(row *ent.WaitlistEntry) id.Item { return row.ItemID })
	products, err := productsOf(ctx, tx, items)
	if err != nil {
		return nil, err
	}
	notices := make([]notice, 0, len(rows))
	for _, row := range rows {
		p := products[row.ItemID]
		n := notice{user: row.UserID, subject: row.ID.UUID(), kind: WaitlistOffer, content: mail.Content{
			Path: p.path(row.ItemID), Notice: mail.NoticeContent{Name: p.name},
		}}
		if row.OfferExpiresAt != nil {
			n.until, n.content.Notice.At = *row.OfferExpiresAt, *row.OfferExpiresAt
		}
		notices = append(notices, n)
	}
	return notices, nil
}

func openingContent(row *ent.Sale) mail.Content {
	return mail.Content{Path: "/s/" + row.Slug, Notice: mail.NoticeContent{Name: row.Title, At: row.StartsAt}}
}

// product is the name of an item, and the sale that it is in.
type product struct{ name, slug string }

// path returns the path of the sale, with the item chosen.
func (p product) path(item id.Item) string {
	return "/s/" + p.slug + "?item=" + item.Public()
}

func productsOf(ctx context.Context, tx *ent.Tx, items []id.Item) (map[id.Item]product, error) {
	rows, err := tx.SaleItem.Query().Where(saleitem.IDIn(items...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read items of notices: %w", err)
	}
	var (
		goodsIDs []id.Goods
		saleIDs  []id.Sale
	)
	for _, row := range rows {
		goodsIDs, saleIDs = append(goodsIDs, row.GoodsID), append(saleIDs, row.SaleID)
	}
	names, slugs := map[id.Goods]string{}, map[id.Sale]string{}
	described, err := tx.Goods.Query().Where(goods.IDIn(goodsIDs...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read goods of notices: %w", err)
	}
	for _, row := range described {
		names[row.ID] = row.Name
	}
	sales, err := tx.Sale.Query().Where(sale.IDIn(saleIDs...)).Select(sale.FieldID, sale.FieldSlug).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sales of notices: %w", err)
	}
	for _, row := range sales {
		slugs[row.ID] = row.Slug
	}
	products := make(map[id.Item]product, len(rows))
	for _, row := range rows {
		products[row.ID] = product{names[row.GoodsID], slugs[row.SaleID]}
	}
	return products, nil
}

// Subjects implements mail.Subjects: it reads what notices are about before they are sent,
// because a notice may wait for its mail server or the operator's service.
type Subjects struct{ DB *postgres.DB }

// Holds reports whether the order is unpaid, the waitlist entry has its offer or still waits, or the sale
// will open.
func (s Subjects) Holds(ctx context.Context, kind mail.Kind, subject uuid.UUID) (bool, error) {
	switch kind {
	case mail.PaymentDeadline, mail.OrderPlaced, mail.ChargeFailed:
		return s.DB.Ent.Order.Query().Where(order.ID(id.Order(subject)), order.StatusEQ(order.StatusPENDING_PAYMENT)).
			Exist(ctx)
	case mail.OrderReview:
		return s.DB.Ent.Order.Query().Where(order.ID(id.Order(subject)), order.StatusEQ(order.StatusPENDING_PAYMENT),
			order.ReviewEQ(order.ReviewHELD)).Exist(ctx)
	case mail.WaitlistOffer:
		return s.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.ID(id.Waitlist(subject)), waitlistentry.StatusEQ(waitlistentry.StatusOFFERED)).Exist(ctx)
	case mail.DrawResult:
		return s.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.ID(id.Waitlist(subject)), waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).Exist(ctx)
	case mail.SaleReminder:
		return s.DB.Ent.Sale.Query().Where(sale.ID(id.Sale(subject)), sale.StatusNEQ(sale.StatusCANCELLED)).Exist(ctx)
	default: // what an e-mail without an end is about
		return true, nil
	}
}
