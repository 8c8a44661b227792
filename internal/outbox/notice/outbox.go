package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/noticefact"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// refundFor is how long the notice of a refund is sent again while its channel is away.
const refundFor = 72 * time.Hour

// Outbox writes facts in the transactions of the domains. A nil *Outbox writes nothing. It
// is safe for concurrent use.
type Outbox struct {
	ahead time.Duration
	rest  bool // a channel besides e-mail
}

// NewOutbox returns an Outbox. ahead is how long before the payment deadline of an order its
// notice is sent, or half of the payment window if that is shorter; rest is whether there is
// a channel besides e-mail.
func NewOutbox(ahead time.Duration, rest bool) *Outbox { return &Outbox{ahead: ahead, rest: rest} }

// subject is what happened to a user.
type subject struct {
	ID       uuid.UUID `json:"id"` // of the order or waitlist entry
	User     id.User   `json:"user"`
	Minor    int64     `json:"minor,omitempty"` // of a refund
	Currency string    `json:"currency,omitempty"`
}

// Placed is what notices need to know of a new order.
type Placed struct {
	Order        id.Order
	User         id.User
	At, Deadline time.Time // of the order, and of its payment
}

// OrdersPlaced writes the facts of new orders: one row for all of them, and one for those
// with the same payment deadline, so that a rush costs one statement for each transaction.
func (o *Outbox) OrdersPlaced(ctx context.Context, tx *ent.Tx, orders []Placed) error {
	if o == nil || len(orders) == 0 {
		return nil
	}
	at := orders[0].At
	placed := fact{kind: OrderPlaced, at: at, due: at}
	var byDeadline []fact
	index := map[time.Time]int{}
	for _, p := range orders {
		s := subject{ID: p.Order.UUID(), User: p.User}
		placed.subjects = append(placed.subjects, s)
		if p.Deadline.After(placed.until) {
			placed.until = p.Deadline
		}
		i, known := index[p.Deadline]
		if !known {
			i = len(byDeadline)
			index[p.Deadline] = i
			due := p.Deadline.Add(-min(o.ahead, p.Deadline.Sub(p.At)/2))
			byDeadline = append(byDeadline, fact{kind: PaymentDeadline, at: at, due: due, until: p.Deadline})
		}
		byDeadline[i].subjects = append(byDeadline[i].subjects, s)
	}
	return write(ctx, tx, append(byDeadline, placed))
}

// Reviewed is an unpaid order that was held for review, or released.
type Reviewed struct {
	Order     id.Order
	User      id.User
	Released  bool
	At, Until time.Time // until when it is held, or is to be paid
}

// OrderReviewed writes the fact of an order that is held, or of the payment deadline of one that was
// released.
func (o *Outbox) OrderReviewed(ctx context.Context, tx *ent.Tx, r Reviewed) error {
	if o == nil {
		return nil
	}
	f := fact{kind: OrderReview, subjects: []subject{{ID: r.Order.UUID(), User: r.User}}, at: r.At, due: r.At,
		until: r.Until}
	if r.Released {
		f.kind, f.due = PaymentDeadline, r.Until.Add(-min(o.ahead, r.Until.Sub(r.At)/2))
	}
	return write(ctx, tx, []fact{f})
}

// ChargeFailed writes the facts of an unpaid order whose card was declined after the draw: one at once,
// and one before its payment deadline.
func (o *Outbox) ChargeFailed(ctx context.Context, tx *ent.Tx, p Placed) error {
	if o == nil {
		return nil
	}
	failed := fact{kind: ChargeFailed, subjects: []subject{{ID: p.Order.UUID(), User: p.User}}, at: p.At, due: p.At,
		until: p.Deadline}
	deadline := failed
	deadline.kind, deadline.due = PaymentDeadline, p.Deadline.Add(-min(o.ahead, p.Deadline.Sub(p.At)/2))
	return write(ctx, tx, []fact{failed, deadline})
}

// Offer is an offer of the waitlist.
type Offer struct {
	Entry     id.Waitlist
	User      id.User
	At, Until time.Time
}

// Offered writes the fact of offers that were made together and end together.
func (o *Outbox) Offered(ctx context.Context, tx *ent.Tx, offers ...Offer) error {
	if o == nil || len(offers) == 0 {
		return nil
	}
	f := fact{kind: WaitlistOffer, at: offers[0].At, due: offers[0].At, until: offers[0].Until}
	for _, offer := range offers {
		f.subjects = append(f.subjects, subject{ID: offer.Entry.UUID(), User: offer.User})
	}
	return write(ctx, tx, []fact{f})
}

// Refunded is money that went back.
type Refunded struct {
	Order  id.Order
	User   id.User
	Amount money.Amount
	At     time.Time
}

// Refunded writes the fact of money that went back, for the channels besides e-mail: the
// e-mail is a receipt, which package receipt writes.
func (o *Outbox) Refunded(ctx context.Context, tx *ent.Tx, r Refunded) error {
	if o == nil || !o.rest {
		return nil
	}
	s := subject{ID: r.Order.UUID(), User: r.User, Minor: r.Amount.Minor, Currency: r.Amount.Currency}
	return write(ctx, tx, []fact{{kind: Refund, subjects: []subject{s}, at: r.At, due: r.At, until: r.At.Add(refundFor)}})
}

type fact struct {
	kind           Kind
	subjects       []subject
	at, due, until time.Time
}

func write(ctx context.Context, tx *ent.Tx, facts []fact) error {
	rows := make([]*ent.NoticeFactCreate, len(facts))
	for i, f := range facts {
		subjects, err := json.Marshal(f.subjects)
		if err != nil {
			return fmt.Errorf("encode fact %s: %w", f.kind, err)
		}
		rows[i] = tx.NoticeFact.Create().SetID(id.New[uuid.UUID]()).SetKind(noticefact.Kind(f.kind)).SetSubjects(subjects).
			SetDueAt(f.due.UTC()).SetUntil(f.until.UTC()).SetCreatedAt(f.at.UTC())
	}
	if err := tx.NoticeFact.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("write facts for notices: %w", err)
	}
	return nil
}
