// Package mail owns e-mails: the outbox that domains write in the transaction of a
// reason, the texts in both languages, and the sender.
//
// It does not know why an e-mail is sent, or who may ask for one; the domains do.
//
//	reason + Mail PENDING ──► SENT
//	(one transaction)   │
//	                    └──► GIVEN_UP  refused by the mail server, too late, or superseded
//
// An e-mail is sent at least once. One that is sent twice has the same Message-ID. Until it
// has ended, its content is sealed: it may hold a link that opens an account.
package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entmail "seckill/ent/mail"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/typed"
)

// Kind names the text of an e-mail.
type Kind string

// Kinds of e-mails. Each has a text in every language.
const (
	VerifyAddress   Kind = "verify"           // link to prove that the user reads the address
	ChangeAddress   Kind = "change"           // the same for a new address
	AddressChanged  Kind = "address_changed"  // to the former address
	ResetPassword   Kind = "reset"            // link to choose a password
	PasswordChanged Kind = "password_changed" // without a link
	AccountDeleted  Kind = "deleted"
	Receipt         Kind = "receipt"        // of money that paid an order
	RefundReceipt   Kind = "refund_receipt" // of money that went back
)

// Kinds of notices, which a user can turn off. Refunded is the summary of RefundReceipt for
// other channels; Admitted is sent by other channels only.
const (
	OrderPlaced     Kind = "order_placed"
	PaymentDeadline Kind = "payment_deadline"
	WaitlistOffer   Kind = "waitlist_offer"
	Refunded        Kind = "refunded"
	SaleReminder    Kind = "sale_reminder"
	Admitted        Kind = "admitted"
	OrderReview     Kind = "order_review"
	DrawResult      Kind = "draw_result"   // without an offer
	ChargeFailed    Kind = "charge_failed" // of a drawn entry
)

// Kinds lists every kind of e-mail.
func Kinds() []Kind {
	return []Kind{
		VerifyAddress, ChangeAddress, AddressChanged, ResetPassword, PasswordChanged, AccountDeleted, Receipt, RefundReceipt,
		OrderPlaced, PaymentDeadline, WaitlistOffer, Refunded, SaleReminder, Admitted, OrderReview, DrawResult,
		ChargeFailed,
	}
}

// keepTrying is how long an e-mail without a deadline of its own is repeated.
const keepTrying = 24 * time.Hour

// OrderPage is the address of the buyer's page of an order with the variables {id} and
// {number}; "" = the page of the embedded shop.
type OrderPage string

// Path returns the page of an order: an address, or a path of the shop.
func (p OrderPage) Path(order id.Order, number string) string {
	if p == "" {
		return "/orders/" + order.Public()
	}
	return strings.NewReplacer("{id}", order.Public(), "{number}", number).Replace(string(p))
}

// Link returns the address of a path of the shop. An address stays as it is.
func Link(shop, path string) string {
	if path == "" || strings.HasPrefix(path, "/") {
		return shop + path
	}
	return path
}

// Content are the values of a text. No value comes from a user: a stranger can have an
// e-mail sent to an address that is not theirs.
type Content struct {
	Path string        `json:"path,omitempty"` // of the link: a path of the shop, or an address; "" = none
	Life time.Duration `json:"life,omitempty"` // of the link

	Receipt ReceiptContent `json:"receipt,omitzero"`
	Notice  NoticeContent  `json:"notice,omitzero"`
	Subject uuid.UUID      `json:"subject,omitzero"` // of a notice: the order, waitlist entry or sale

	Unsubscribe string `json:"unsubscribe,omitempty"` // path of the link that ends such e-mails; "" = none
}

// NoticeContent are the values of notices.
type NoticeContent struct {
	Name   string    `json:"name"`             // of the product or sale
	Number string    `json:"number,omitempty"` // of the order, or in the draw
	Amount string    `json:"amount,omitempty"` // with the currency
	At     time.Time `json:"at,omitzero"`      // deadline or opening
}

// ReceiptContent are the values of receipts.
type ReceiptContent struct {
	Number   string `json:"number"`
	Item     string `json:"item"` // name of the goods
	Quantity int    `json:"quantity"`
	Amount   string `json:"amount"`            // with the currency
	Tax      string `json:"tax,omitempty"`     // that the amount contains; "" = not named
	TaxName  string `json:"taxName,omitempty"` // with Tax
	TaxRate  string `json:"taxRate,omitempty"` // with Tax, in percent
	Seller   string `json:"seller,omitempty"`
	Details  string `json:"details,omitempty"` // of the seller, on one line

	At     time.Time `json:"at,omitzero"`      // when the money moved; zero in e-mails of former releases
	Buyer  string    `json:"buyer,omitempty"`  // display name
	Method string    `json:"method,omitempty"` // of payment, in the language of the e-mail; "" = not named
}

// Message is an e-mail to send.
type Message struct {
	User     id.User // Nil = none
	To       string  // e-mail address, or phone number in E.164
	Kind     Kind
	Language locale.Language
	Content  Content
	Until    time.Time // when it is too late; zero = after a day
}

// Outbox writes e-mails in the transactions of their reasons. It is safe for concurrent
// use.
type Outbox struct {
	sealer auth.Sealer
	clock  clock.Clock
}

// NewOutbox returns an Outbox.
func NewOutbox(keys auth.Keys, c clock.Clock) *Outbox {
	return &Outbox{sealer: newSealer(keys), clock: c}
}

func newSealer(keys auth.Keys) auth.Sealer { return auth.NewSealer(keys, "mail contents") }

// Undeliverable reports whether the mail server did not take the last e-mail to an address
// because of the address itself: it knows no addresses outside ASCII.
func Undeliverable(ctx context.Context, client *ent.MailClient, address string) (bool, error) {
	if !typed.International(address) {
		return false, nil
	}
	last, err := client.Query().Where(entmail.Recipient(address), entmail.StateNEQ(entmail.StatePENDING)).
		Order(ent.Desc(entmail.FieldID)).First(ctx)
	if ent.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the last e-mail to an address: %w", err)
	}
	return last.Error == ErrNotInternational.Error(), nil
}

// Write writes an e-mail. It is sent after the commit.
func (o *Outbox) Write(ctx context.Context, tx *ent.Tx, m Message) error {
	create, err := o.prepare(tx, m)
	if err == nil {
		err = create.Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("write e-mail %s: %w", m.Kind, err)
	}
	return nil
}

// Pretend writes an e-mail that is not sent. It takes as long as Write, so that the
// duration of a request does not reveal whether an account exists.
func (o *Outbox) Pretend(ctx context.Context, tx *ent.Tx, m Message) error {
	create, err := o.prepare(tx, m)
	if err == nil {
		err = create.SetState("GIVEN_UP").SetEndedAt(o.clock.Now()).SetContent(nil).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("write e-mail %s: %w", m.Kind, err)
	}
	return nil
}

func (o *Outbox) prepare(tx *ent.Tx, m Message) (*ent.MailCreate, error) {
	text, err := json.Marshal(m.Content)
	if err != nil {
		return nil, err
	}
	mailID, now := id.New[uuid.UUID](), o.clock.Now()
	sealed, err := o.sealer.Seal(mailID, text)
	if err != nil {
		return nil, err
	}
	if m.Until.IsZero() {
		m.Until = now.Add(keepTrying)
	}
	create := tx.Mail.Create().SetID(mailID).SetRecipient(m.To).SetKind(string(m.Kind)).SetLanguage(string(m.Language)).
		SetContent(sealed).SetDueAt(now).SetRetryUntil(m.Until).SetCreatedAt(now)
	if !m.User.IsZero() {
		create.SetUserID(m.User)
	}
	return create, nil
}
