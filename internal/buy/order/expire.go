package order

import (
	"context"
	"fmt"
	"maps"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/ent/predicate"
	"seckill/ent/stockmovement"
	"seckill/ent/user"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Overdue returns unpaid orders with a deadline before the given time, the most overdue
// first, after the given order (nil = from the beginning).
func (s *Store) Overdue(ctx context.Context, before time.Time, after *Order, limit int) ([]*Order, error) {
	query := s.db.Ent.Order.Query().
		Where(pastDeadline(before))
	if after != nil {
		query.Where(entorder.PaymentDeadlineGTE(*after.PaymentDeadline), entorder.Or(
			entorder.PaymentDeadlineGT(*after.PaymentDeadline), entorder.IDGT(after.ID)))
	}
	rows, err := query.Order(ent.Asc(entorder.FieldPaymentDeadline, entorder.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find overdue orders: %w", err)
	}
	return collect.Map(rows, FromRow), nil
}

func pastDeadline(before time.Time) predicate.Order {
	return entorder.And(entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.PaymentDeadlineLT(before))
}

// OverdueRows selects what Overdue reads, for DB.AnyRows.
func OverdueRows(before time.Time) *sql.Selector {
	return postgres.Rows(entorder.Table, pastDeadline(before))
}

// Expire moves many unpaid orders to EXPIRED in one transaction with one update per
// item; Apply moves one. Orders that another process has moved since they were read, or
// is moving, are left out. It returns the expired orders. Their moves are passed
// to facts, which may be nil.
func Expire(ctx context.Context, db *postgres.DB, facts Facts, overdue []*Order, at time.Time) ([]*Order, error) {
	x := expiry{dialect: db.Dialect, facts: orNone(facts), at: instant(at)}
	var expired []*Order
	err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		expired, err = x.expire(ctx, tx, overdue)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("expire %d orders: %w", len(overdue), err)
	}
	return expired, nil
}

// expiry is what the steps of Expire share.
type expiry struct {
	dialect string
	facts   Facts
	at      time.Time
}

func (x expiry) expire(ctx context.Context, tx *ent.Tx, overdue []*Order) ([]*Order, error) {
	still, err := lockOverdue(ctx, tx, x.dialect, overdue)
	if err != nil || len(still) == 0 {
		return nil, err
	}
	ids := make([]id.Order, 0, len(still))
	units := map[id.Item]int{}
	expired := make([]*Order, 0, len(still))
	ledger := make([]*ent.StockMovementCreate, 0, len(still))
	log := make([]*ent.OrderEventCreate, 0, len(still))
	for _, o := range still {
		o = o.moved(Expired, x.at)
		expired, ids = append(expired, o), append(ids, o.ID)
		units[o.Item] += o.Quantity
		ledger = append(ledger, tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(o.ID.UUID()).
			SetItemID(o.Item).
			SetKind(stockmovement.KindRELEASE).SetQuantity(o.Quantity).SetCreatedAt(x.at))
		log = append(log, logRow(tx, o, x.at, Entry{By: Actor{Kind: Clock}, Code: CodeExpired}))
	}
	n, err := tx.Order.Update().Where(entorder.IDIn(ids...), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT)).
		SetStatus(entorder.StatusEXPIRED).AddVersion(1).SetUpdatedAt(x.at).ClearPaymentDeadline().SetReturnDue(true).Save(ctx)
	if err != nil {
		return nil, err
	}
	if n != len(ids) {
		return nil, ErrMoved // impossible: the rows are locked
	}
	if err := tx.StockMovement.CreateBulk(ledger...).Exec(ctx); err != nil {
		return nil, err
	}
	if err := tx.OrderEvent.CreateBulk(log...).Exec(ctx); err != nil {
		return nil, err
	}
	if err := x.facts.Moved(ctx, tx, PendingPayment, expired...); err != nil {
		return nil, err
	}
	for _, item := range sortedIDs(maps.Keys(units)) {
		if err := changeStock(ctx, tx, Release, item, units[item]); err != nil {
			return nil, err
		}
	}
	return expired, nil
}

// lockOverdue locks and returns the orders that are unchanged since they were read. It
// skips rows that another process has locked, because that process is moving them.
func lockOverdue(ctx context.Context, tx *ent.Tx, name string, overdue []*Order) ([]*Order, error) {
	read := make(map[id.Order]*Order, len(overdue))
	ids := make([]id.Order, 0, len(overdue))
	for _, o := range overdue {
		read[o.ID] = o
		ids = append(ids, o.ID)
	}
	query := tx.Order.Query().Where(entorder.IDIn(ids...), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT))
	postgres.SkipLocked(name, query)
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	still := make([]*Order, 0, len(rows))
	for _, row := range rows {
		if o := read[row.ID]; o.Version == row.Version {
			still = append(still, o)
		}
	}
	return still, nil
}

var unpaidOfBlocked predicate.Order = func(s *sql.Selector) {
	users := sql.Table(user.Table)
	s.Where(sql.EQ(s.C(entorder.FieldStatus), string(PendingPayment)))
	s.Where(sql.In(s.C(entorder.FieldUserID), sql.Select(users.C(user.FieldID)).From(users).
		Where(sql.NotNull(users.C(user.FieldDisabledAt)))))
}

// UnpaidOfBlocked returns at most limit unpaid orders of users who are disabled, oldest
// first.
func (s *Store) UnpaidOfBlocked(ctx context.Context, limit int) ([]id.Order, error) {
	ids, err := s.db.Ent.Order.Query().Where(unpaidOfBlocked).
		Order(ent.Asc(entorder.FieldID)).Limit(limit).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read unpaid orders of disabled users: %w", err)
	}
	return ids, nil
}

// Unfinished counts overdue work: orders with a payment deadline before the given time
// that are still unpaid, and units that are still due in Redis. The loops finish this
// work, so counts that stay above zero show that a loop does not run.
func (s *Store) Unfinished(ctx context.Context, before time.Time) (map[string]int, error) {
	return s.db.Counts(ctx, map[string]*sql.Selector{
		"unpaid_orders": OverdueRows(before),
		"returns":       postgres.Rows(entorder.Table, entorder.ReturnDue(true), entorder.UpdatedAtLT(before)),
		"failures":      postgres.Rows(orderfailure.Table, orderfailure.Released(false), orderfailure.CreatedAtLT(before)),
	})
}
