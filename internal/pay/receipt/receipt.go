// Package receipt owns what the receipt of an order says beside the order: the seller and the
// tax of the installation. It writes the e-mails that buyers get when they have paid, and when
// money went back.
//
// It does not own orders, payments, or how an e-mail is sent.
package receipt

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
)

// keepTrying is how long a receipt is sent again while the mail server is away: it is of use for
// days.
const keepTrying = 3 * 24 * time.Hour

// Seller is whom receipts name.
type Seller struct {
	Name    string   // "" = receipts name none
	Details []string // lines: address, registration, tax number
	Tax     *Tax     // nil = receipts name none
}

// Tax is contained in all prices.
type Tax struct {
	Name string // "VAT"
	Rate string // in percent: "19", "8.1"

	hundredths int64 // of a percent
}

var rate = regexp.MustCompile(`^(\d{1,2})(?:\.(\d{1,2}))?$`)

// NewTax returns a tax with a rate in percent, which has at most two digits after the point.
func NewTax(name, percent string) (*Tax, error) {
	parts := rate.FindStringSubmatch(percent)
	if parts == nil || name == "" {
		return nil, errors.New("is no rate in percent: write 19 or 8.1")
	}
	var hundredths int64
	if _, err := fmt.Sscan(parts[1]+(parts[2] + "00")[:2], &hundredths); err != nil {
		return nil, fmt.Errorf("rate of the tax: %w", err)
	}
	return &Tax{Name: name, Rate: percent, hundredths: hundredths}, nil
}

// whole is 100 percent, in hundredths of a percent.
const whole = 100 * 100

// In returns the tax that a price contains, rounded half up.
func (t Tax) In(price money.Amount) money.Amount {
	gross := whole + t.hundredths
	return money.Amount{Minor: (2*price.Minor*t.hundredths + gross) / (2 * gross), Currency: price.Currency}
}

// Mailer sends receipts by mail to buyers who have shown that they read their address. It
// implements payment.Receipts.
type Mailer struct {
	Outbox  *mail.Outbox // nil = no e-mails
	Notices *notice.Outbox
	Choices Choices
	Seller  Seller
	Page    mail.OrderPage
	Clock   clock.Clock
}

// Choices are those of users about notices.
type Choices interface {
	// ByMail reports whether a user wants e-mails of a kind, and returns the path of the link
	// that ends them.
	ByMail(ctx context.Context, tx *ent.Tx, user id.User, kind notice.Kind) (unsubscribe string, wanted bool, err error)
}

// Paid writes the e-mail about the money that paid an order.
func (m Mailer) Paid(ctx context.Context, tx *ent.Tx, o *order.Order, method func(locale.Language) string) error {
	return m.write(ctx, tx, o, message{kind: mail.Receipt,
		amount: money.Amount{Minor: o.TotalMinor(), Currency: o.Currency}, method: method})
}

// Refunded writes the notice about money that went back; the e-mail, unless the buyer turned
// it off.
func (m Mailer) Refunded(ctx context.Context, tx *ent.Tx, o *order.Order, amount money.Amount, units int) error {
	if err := m.Notices.Refunded(ctx, tx, notice.Refunded{Order: o.ID, User: o.User, Amount: amount,
		At: m.Clock.Now()}); err != nil {
		return err
	}
	if m.Outbox == nil {
		return nil
	}
	unsubscribe, wanted, err := m.Choices.ByMail(ctx, tx, o.User, notice.Refund)
	if err != nil || !wanted {
		return err
	}
	part := *o
	part.Quantity = units
	return m.write(ctx, tx, &part, message{kind: mail.RefundReceipt, amount: amount, unsubscribe: unsubscribe})
}

// message is an e-mail about money.
type message struct {
	kind        mail.Kind
	amount      money.Amount
	unsubscribe string                       // "" = the e-mail is always sent
	method      func(locale.Language) string // how it was paid; nil = not named
}

func (m Mailer) write(ctx context.Context, tx *ent.Tx, o *order.Order, msg message) error {
	if m.Outbox == nil {
		return nil
	}
	user, err := tx.User.Get(ctx, o.User)
	if ent.IsNotFound(err) {
		return nil // deleted
	}
	if err != nil {
		return fmt.Errorf("read buyer: %w", err)
	}
	if user.VerifiedAt == nil || !strings.Contains(user.Account, "@") {
		return nil
	}
	item, err := tx.SaleItem.Get(ctx, o.Item)
	if err != nil {
		return fmt.Errorf("read item: %w", err)
	}
	goods, err := tx.Goods.Get(ctx, item.GoodsID)
	if err != nil {
		return fmt.Errorf("read goods: %w", err)
	}
	content := mail.Content{Path: m.Page.Path(o.ID, o.Number), Unsubscribe: msg.unsubscribe, Receipt: mail.ReceiptContent{
		Number: o.Number, Item: goods.Name, Quantity: o.Quantity, Amount: msg.amount.String(), Seller: m.Seller.Name,
		Details: strings.Join(m.Seller.Details, ", "),
	}}
	content.Receipt.At, content.Receipt.Buyer = m.Clock.Now(), user.DisplayName
	if msg.method != nil {
		content.Receipt.Method = msg.method(locale.Language(user.Language))
	}
	if t := m.Seller.Tax; t != nil {
		content.Receipt.TaxName, content.Receipt.TaxRate, content.Receipt.Tax = t.Name, t.Rate, t.In(msg.amount).String()
	}
	return m.Outbox.Write(ctx, tx, mail.Message{
		User: user.ID, To: user.Account, Kind: msg.kind, Language: locale.Language(user.Language), Content: content,
		Until: m.Clock.Now().Add(keepTrying),
	})
}
