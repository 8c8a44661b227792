package order

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/internal/identity/person"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// ReviewLife bounds a review: one that no operator decides must not keep a scarce unit from
// other buyers, nor a buyer waiting, for longer than a day.
const ReviewLife = 24 * time.Hour

// Review is the check of an order by an operator before it can be paid. It is part of an
// unpaid order, not a status: the units stay held, and the ledger does not move. The answer of
// the buyer is in Postgres only.
type Review struct {
	Held     bool          `json:"held"`
	Since    time.Time     `json:"since"`
	Kinds    []person.Kind `json:"kinds"` // what several accounts share
	Answered bool          `json:"answered,omitempty"`
}

// Until returns when the review ends by itself.
func (r *Review) Until() time.Time { return r.Since.Add(ReviewLife) }

// UnderReview reports whether the order waits for an operator and cannot be paid.
func (o *Order) UnderReview() bool {
	return o.Status == PendingPayment && o.Review != nil && o.Review.Held
}

// UnderReview refuses the payment of an order that is held for review.
type UnderReview struct {
	fault.Refused
	Kinds []person.Kind // what several accounts share
}

// NewUnderReview returns the refusal of an order under review.
func NewUnderReview(o *Order, path ...string) UnderReview {
	return UnderReview{fault.Refused{Why: fault.UnderReview, At: path}, o.Review.Kinds}
}

// reviewOf returns the review of a row; nil = it was never held.
func reviewOf(row *ent.Order) *Review {
	if row.Review == nil || row.ReviewAt == nil {
		return nil
	}
	r := &Review{Held: *row.Review == entorder.ReviewHELD, Since: row.ReviewAt.UTC(), Answered: row.ReviewAnswer != nil}
	for kind := range strings.SplitSeq(row.ReviewKinds, ",") {
		if kind != "" {
			r.Kinds = append(r.Kinds, person.Kind(kind))
		}
	}
	return r
}

func (r *Review) store(update *ent.OrderUpdate) {
	state := entorder.ReviewRELEASED
	if r.Held {
		state = entorder.ReviewHELD
	}
	kinds := collect.Map(r.Kinds, func(kind person.Kind) string { return string(kind) })
	update.SetReview(state).SetReviewAt(r.Since).SetReviewKinds(strings.Join(kinds, ","))
}

// Labels returns the names of the clusters that an order may be in, without that of its means of
// payment, which is unknown before it is paid.
func (o *Order) Labels() []string {
	var labels []string
	for _, key := range []person.Key{o.Persons.Contact, o.Persons.Address, o.Origin.Network, o.Origin.Device} {
		if key != "" {
			labels = append(labels, key.Label())
		}
	}
	return labels
}

// HoldForReview holds an unpaid order in the caller's transaction: it does not expire and cannot be
// paid.
//
//nolint:revive // an act on an order in the caller's transaction
func HoldForReview(ctx context.Context, tx *ent.Tx, o *Order, at time.Time, kinds []person.Kind, e Entry) (*Order,
	error) {
	held := o.moved(PendingPayment, instant(at))
	held.PaymentDeadline = nil
	held.Review = &Review{Held: true, Since: held.UpdatedAt, Kinds: slices.Clone(kinds)}
	if o.Status != PendingPayment || o.UnderReview() {
		return nil, ErrMoved
	}
	return reviewed(ctx, tx, o, held, e)
}

// ReleaseFromReview ends the review of an order in the caller's transaction. It must be paid until
// the deadline, like a new one.
//
//nolint:revive // an act on an order in the caller's transaction
func ReleaseFromReview(ctx context.Context, tx *ent.Tx, o *Order, at, deadline time.Time, e Entry) (*Order, error) {
	if !o.UnderReview() {
		return nil, ErrMoved
	}
	released := o.moved(PendingPayment, instant(at))
	review := *o.Review
	review.Held = false
	deadline = instant(deadline)
	released.PaymentDeadline, released.Review = &deadline, &review
	return reviewed(ctx, tx, o, released, e)
}

// AnswerReview stores what the buyer answers, once, in the caller's transaction.
func AnswerReview(ctx context.Context, tx *ent.Tx, o *Order, at time.Time, text string) (*Order, error) {
	if !o.UnderReview() || o.Review.Answered {
		return nil, ErrMoved
	}
	answered := o.moved(PendingPayment, instant(at))
	review := *o.Review
	review.Answered = true
	answered.Review = &review
	answered, err := reviewed(ctx, tx, o, answered, Entry{By: Actor{Kind: Buyer, User: o.User}, Code: CodeReviewAnswered})
	if err != nil {
		return nil, err
	}
	if err := tx.Order.Update().Where(entorder.ID(o.ID)).SetReviewAnswer(text).Exec(ctx); err != nil {
		return nil, fmt.Errorf("store answer of order %s: %w", o.ID, err)
	}
	return answered, nil
}

func reviewed(ctx context.Context, tx *ent.Tx, was, is *Order, e Entry) (*Order, error) {
	is.Noted = true
	if err := compareAndSet(ctx, tx, was, is, ledgerLine{}); err != nil {
		return nil, err
	}
	return is, Log(ctx, tx, is, is.UpdatedAt, e)
}

// ReviewAnswer returns what the buyer of an order answered; "" = nothing.
func (s *Store) ReviewAnswer(ctx context.Context, o id.Order) (string, error) {
	row, err := s.db.Ent.Order.Query().Where(entorder.ID(o)).Select(entorder.FieldReviewAnswer).Only(ctx)
	if ent.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read answer of order %s: %w", o, err)
	}
	return postgres.Value(row.ReviewAnswer), nil
}

func reviewedBefore(t time.Time) predicate.Order {
	return entorder.And(inReview(), entorder.ReviewAtLT(t))
}

// ReviewsDueRows selects what ReviewsDue reads, for DB.AnyRows.
func ReviewsDueRows(before time.Time) *sql.Selector {
	return postgres.Rows(entorder.Table, reviewedBefore(before))
}

// ReviewsDue returns orders whose review began before a time, the oldest first.
func (s *Store) ReviewsDue(ctx context.Context, before time.Time, limit int) ([]*Order, error) {
	rows, err := s.db.Ent.Order.Query().
		Where(reviewedBefore(before)).Order(ent.Asc(entorder.FieldReviewAt)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find reviews that end: %w", err)
	}
	return fromRows(rows), nil
}

func fromRows(rows []*ent.Order) []*Order {
	return collect.Map(rows, FromRow)
}

// SaleReviews are the orders of a sale that are held for review.
type SaleReviews struct {
	Sale   id.Sale
	Orders int
	Since  time.Time // when the first review began
}

// Reviews returns the sales that have orders under review, by at most limit orders.
func (s *Store) Reviews(ctx context.Context, limit int) ([]SaleReviews, error) {
	rows, err := s.db.Ent.Order.Query().Where(inReview()).Order(ent.Asc(entorder.FieldReviewAt)).Limit(limit).
		Select(entorder.FieldSaleID, entorder.FieldReviewAt).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read orders under review: %w", err)
	}
	var sales []SaleReviews
	for _, row := range rows {
		at := slices.IndexFunc(sales, func(r SaleReviews) bool { return r.Sale == row.SaleID })
		if at < 0 {
			at = len(sales)
			sales = append(sales, SaleReviews{Sale: row.SaleID, Since: row.ReviewAt.UTC()})
		}
		sales[at].Orders++
	}
	return sales, nil
}
