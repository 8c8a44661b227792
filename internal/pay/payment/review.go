package payment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/identity/person"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	// reviewEvery is the pause between two looks for clusters of sales that hold them. Pay looks
	// itself, so that the pause lets no order through.
	reviewEvery = 2 * time.Second
	// reviewTimeout bounds one look.
	reviewTimeout = 10 * time.Second
	// maxClusters bounds the clusters of one look: those with the most accounts.
	maxClusters = 1000
	// maxHeld bounds the orders that one look, or one call of an operator, holds.
	maxHeld = 200
	// maxLooking bounds the buyers that wait for a look.
	maxLooking = 4096
	// maxAnswer bounds the answer of a buyer, in characters.
	maxAnswer = 500
)

// look is a request for the clusters of a sale with at least so many accounts.
type look struct {
	sale     id.Sale
	accounts int
}

// newLooks returns what reads the clusters of sales: buyers that pay while a sale is read share the
// next reading.
func (s *Service) newLooks() *batch.Batcher[look, []order.Cluster] {
	return batch.New(batch.Config[look, []order.Cluster]{
		Process: s.lookAll, MaxBatch: maxLooking, MaxInFlight: 1, MaxWaiting: maxLooking, Timeout: reviewTimeout,
	})
}

func (s *Service) lookAll(ctx context.Context, looks []look) []batch.Result[[]order.Cluster] {
	read := map[look]batch.Result[[]order.Cluster]{}
	results := make([]batch.Result[[]order.Cluster], len(looks))
	for i, l := range looks {
		r, done := read[l]
		if !done {
			r.Value, r.Err = s.cfg.Orders.Clusters(ctx, order.ClustersInput{Sale: l.sale, Accounts: l.accounts, Open: true,
				Limit: maxClusters})
			read[l] = r
		}
		results[i] = r
	}
	return results
}

// review refuses an order that is under review, or that joined a cluster which its sale holds.
// It returns the order as it is then.
func (s *Service) review(ctx context.Context, o *order.Order) (*order.Order, error) {
	if o.UnderReview() {
		return o, order.NewUnderReview(o, "orderId")
	}
	if o.Review != nil {
		return o, nil // released
	}
	row, err := s.cfg.DB.Ent.Sale.Get(ctx, o.Sale)
	if err != nil {
		return o, fmt.Errorf("read sale %s: %w", o.Sale, err)
	}
	labels := o.Labels()
	if row.ReviewAccounts == 0 || len(labels) == 0 {
		return o, nil
	}
	found, err := s.looks.Do(ctx, look{o.Sale, row.ReviewAccounts})
	if err != nil {
		return o, fmt.Errorf("look for clusters of order %s: %w", o.ID, err)
	}
	kinds := kindsOf(labels, found)
	if len(kinds) == 0 {
		return o, nil
	}
	held, err := s.holdOrder(ctx, o, kinds, order.Entry{By: order.Actor{Kind: order.Clock}, Code: order.CodeHeld})
	if errors.Is(err, order.ErrMoved) {
		return o, errNotPayable // the next try reads the new state
	}
	if err != nil {
		return o, err
	}
	return held, order.NewUnderReview(held, "orderId")
}

func kindsOf(labels []string, clusters []order.Cluster) (kinds []person.Kind) {
	for _, c := range clusters {
		if slices.Contains(labels, c.Label) {
			kinds = append(kinds, c.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// holdOrder holds an unpaid order without an open payment. It returns order.ErrMoved if the order has changed.
func (s *Service) holdOrder(ctx context.Context, o *order.Order, kinds []person.Kind,
	entry order.Entry) (held *order.Order, err error) {
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		held, err = s.holdIn(ctx, tx, o, kinds, entry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("hold order %s for review: %w", o.ID, err)
	}
	s.Reviewed(ctx, held)
	return held, nil
}

func (s *Service) holdIn(ctx context.Context, tx *ent.Tx, o *order.Order, kinds []person.Kind,
	entry order.Entry) (*order.Order, error) {
	held, err := order.HoldForReview(ctx, tx, o, s.now(), kinds, entry)
	if err != nil {
		return nil, err
	}
	// The order's row is locked now: a payment that began in the meantime is visible.
	open, err := tx.Payment.Query().Where(entpayment.OrderID(o.ID), entpayment.StatusIn(openStatuses...)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("read payments of order %s: %w", o.ID, err)
	}
	if open {
		return nil, order.ErrMoved
	}
	if s.cfg.Facts == nil {
		return held, nil
	}
	return held, s.cfg.Facts.Reviewed(ctx, tx, held)
}

// Reviewed publishes orders whose review changed, after the commit.
func (s *Service) Reviewed(ctx context.Context, orders ...*order.Order) {
	for _, o := range orders {
		s.cfg.AfterCommit.Publish(ctx, o)
	}
	s.reportChange(ctx)
}

// HoldInput is what an operator holds for review.
type HoldInput struct {
	Sale     id.Sale
	Cluster  string // its label
	Operator id.User
	Note     string
}

// Holdable returns the unpaid orders of a cluster that an operator can hold, at most maxHeld, and how many
// cannot be held: the operator's own, and those whose payment cannot be closed now. Payments that were
// begun are closed at their providers.
func (s *Service) Holdable(ctx context.Context, in HoldInput) (free []*order.Order, left int, err error) {
	orders, err := s.cfg.Orders.Unreviewed(ctx, in.Sale, in.Cluster, false, maxHeld)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range orders {
		closed := closedNot
		if o.User != in.Operator {
			if closed, err = s.closePayments(ctx, o.ID); err != nil {
				return nil, 0, err
			}
		}
		switch closed {
		case closedPaid: // there is nothing to hold
		case closedAll:
			if o, err = s.reload(ctx, o.ID); err != nil {
				return nil, 0, err
			}
			free = append(free, o)
		case closedNot:
			left++
		}
	}
	return free, left, nil
}

// HoldIn holds orders in the caller's transaction, and Reviewed follows its commit. Beside order.ErrMoved
// it returns the position of the order that is not as it was.
func (s *Service) HoldIn(ctx context.Context, tx *ent.Tx, orders []*order.Order, in HoldInput) (held []*order.Order,
	moved int, err error) {
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeHeld, Note: in.Note}
	for i, o := range orders {
		now, err := s.holdIn(ctx, tx, o, []person.Kind{person.KindOf(in.Cluster)}, entry)
		if err != nil {
			return nil, i, fmt.Errorf("hold order %s for review: %w", o.ID, err)
		}
		held = append(held, now)
	}
	return held, 0, nil
}

// Release ends the review of an order by an entry in its log. Its buyer has the whole payment window of the
// sale. Without a review the order is returned beside CONFLICT.
func (s *Service) Release(ctx context.Context, orderID id.Order, entry order.Entry) (*order.Order, error) {
	return s.changeReview(ctx, orderID, func(ctx context.Context, tx *ent.Tx, o *order.Order) (*order.Order, error) {
		return s.ReleaseIn(ctx, tx, o, entry)
	})
}

// ReleaseIn is Release in the caller's transaction; the caller calls Reviewed after the commit. It returns
// order.ErrMoved if the order has changed or is not under review.
func (s *Service) ReleaseIn(ctx context.Context, tx *ent.Tx, o *order.Order, entry order.Entry) (*order.Order, error) {
	row, err := tx.Sale.Get(ctx, o.Sale)
	if err != nil {
		return nil, fmt.Errorf("read sale %s: %w", o.Sale, err)
	}
	now := s.now()
	entry.Code = order.CodeReviewReleased
	released, err := order.ReleaseFromReview(ctx, tx, o, now,
		now.Add(time.Duration(row.PaymentWindowSeconds)*time.Second), entry)
	if err != nil || s.cfg.Facts == nil {
		return released, err
	}
	return released, s.cfg.Facts.Reviewed(ctx, tx, released)
}

// Answer stores what the buyer of an order under review answers, once.
func (s *Service) Answer(ctx context.Context, orderID id.Order, user id.User, text string) (*order.Order, error) {
	if err := checkText(&text, 1, maxAnswer, "text"); err != nil {
		return nil, err
	}
	if o, err := s.own(ctx, orderID, user); err != nil || o == nil {
		return nil, err
	}
	return s.changeReview(ctx, orderID, func(ctx context.Context, tx *ent.Tx, o *order.Order) (*order.Order, error) {
		return order.AnswerReview(ctx, tx, o, s.now(), text)
	})
}

// changeReview changes an order under review in a transaction and publishes it.
func (s *Service) changeReview(ctx context.Context, orderID id.Order,
	change func(context.Context, *ent.Tx, *order.Order) (*order.Order, error)) (*order.Order, error) {
	for range maxRaces {
		o, err := s.reload(ctx, orderID)
		if err != nil {
			return nil, err
		}
		var changed *order.Order
		err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			changed, err = change(ctx, tx, o)
			return err
		})
		if err == nil {
			s.Reviewed(ctx, changed)
			return changed, nil
		}
		if !errors.Is(err, order.ErrMoved) {
			return nil, err
		}
		now, err := s.reload(ctx, orderID)
		if err != nil {
			return nil, err
		}
		if now.Version == o.Version { // it is not under such a review
			return now, fault.Refused{Why: fault.Conflict, At: []string{"orderId"}}
		}
	}
	return nil, busy("The order is being changed. Please try again.")
}

// reviewedSales are the sales that hold orders of clusters.
var reviewedSales = entsale.And(entsale.ReviewAccountsGT(0), entsale.SettledAtIsNil())

// StepReviews holds unpaid orders of clusters in sales that hold them, and ends reviews that no operator
// decided in time. An order whose payment has begun is left: its buyer was let through.
func (s *Service) StepReviews(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var failed []error
	due, err := s.cfg.Orders.ReviewsDue(ctx, s.now().Add(-order.ReviewLife), perStep)
	failed = append(failed, err)
	for _, o := range due {
		_, err := s.Release(ctx, o.ID, order.Entry{By: order.Actor{Kind: order.Clock}})
		if _, refused := fault.AsRefusal(err); refused {
			continue // decided meanwhile
		}
		if failed = append(failed, err); err == nil {
			counts["released"]++
		}
	}
	sales, err := s.cfg.DB.Ent.Sale.Query().Where(reviewedSales).All(ctx)
	failed = append(failed, err)
	for _, row := range sales {
		n, err := s.holdClusters(ctx, row)
		counts["held"] += n
		failed = append(failed, err)
	}
	return counts, errors.Join(failed...)
}

// holdClusters holds unpaid orders of the clusters of a sale.
func (s *Service) holdClusters(ctx context.Context, row *ent.Sale) (held int, err error) {
	if any, err := s.cfg.Orders.HasUnpaid(ctx, row.ID); err != nil || !any {
		return 0, err
	}
	found, err := s.looks.Do(ctx, look{row.ID, row.ReviewAccounts})
	if err != nil {
		return 0, fmt.Errorf("look for clusters of sale %s: %w", row.ID, err)
	}
	for _, c := range found {
		orders, err := s.cfg.Orders.Unreviewed(ctx, row.ID, c.Label, true, maxHeld-held)
		if err != nil {
			return held, err
		}
		free, _, err := s.splitByOpenPayment(ctx, orders)
		if err != nil {
			return held, err
		}
		for _, o := range free {
			_, err := s.holdOrder(ctx, o, kindsOf(o.Labels(), found), order.Entry{By: order.Actor{Kind: order.Clock},
				Code: order.CodeHeld})
			if err == nil {
				held++
			} else if !errors.Is(err, order.ErrMoved) {
				return held, err
			}
		}
		if held >= maxHeld {
			break
		}
	}
	return held, nil
}

// Reviews returns the sales that have orders under review, by at most limit orders.
func (s *Service) Reviews(ctx context.Context, limit int) ([]order.SaleReviews, error) {
	return s.cfg.Orders.Reviews(ctx, limit)
}
