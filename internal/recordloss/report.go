package recordloss

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/orderfailure"
	"seckill/ent/paymentevent"
	"seckill/ent/recordmark"
	"seckill/internal/id"
	"seckill/internal/money"
	"seckill/internal/order"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
)

// What is concerned by a loss of commits.
const (
	OrderMissing   = "ORDER_MISSING"   // Redis has a copy of an order that Postgres does not have
	OrderBehind    = "ORDER_BEHIND"    // Redis has a newer state of an order
	FailureMissing = "FAILURE_MISSING" // Redis has a failed task that Postgres does not have
	TaskFailed     = "TASK_FAILED"     // a task failed because Postgres had lost its order
	MoneyHeld      = "MONEY_HELD"      // money of a payment that Postgres does not know waits for an operator
)

// Concern is an order, a task or a payment that a loss of commits concerns.
type Concern struct {
	What    string `json:"what"`
	Order   string `json:"orderId,omitempty"`
	Task    string `json:"taskId,omitempty"`
	Payment string `json:"paymentId,omitempty"`
	Sale    string `json:"saleId,omitempty"`
	User    string `json:"userId,omitempty"`
	Copy    string `json:"copy,omitempty"`   // state in Redis, or what the provider reported
	Record  string `json:"record,omitempty"` // state in Postgres
}

// Report lists what the last loss of commits concerns.
type Report struct {
	LostAt    *time.Time `json:"lostAt"`    // when it was noticed; null = none was
	Recovered bool       `json:"recovered"` // the gates and copies follow the record again
	Concerns  []Concern  `json:"concerns"`
}

// Reporter lists what a loss concerns. It changes nothing.
type Reporter struct {
	DB     *postgres.DB
	Keys   reservation.Keys
	Cache  *order.Cache
	Orders *order.Store
}

// Report compares the copies in Redis with Postgres, and lists the tasks that failed and
// the money that is held since the last loss was noticed.
func (r Reporter) Report(ctx context.Context) (*Report, error) {
	report := &Report{Recovered: true, Concerns: []Concern{}}
	row, err := r.DB.Ent.RecordMark.Query().Where(recordmark.ID(markID)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("read the mark: %w", err)
	}
	if row != nil && row.LostAt != nil {
		at := row.LostAt.UTC()
		report.LostAt, report.Recovered = &at, row.Recovered >= row.Lost
	}
	err = r.Cache.EachCopy(ctx, r.Keys.AnyTasks(), func(copies []order.Copy) error {
		found, err := r.Orders.Unrecorded(ctx, copies)
		if err != nil {
			return err
		}
		return r.add(ctx, report, found)
	})
	if err != nil || report.LostAt == nil {
		return report, err
	}
	return report, r.since(ctx, report)
}

func (r Reporter) add(ctx context.Context, report *Report, found order.Unrecorded) error {
	for _, o := range found.Orders {
		report.Concerns = append(report.Concerns, concernOf(OrderMissing, o, ""))
	}
	for _, o := range found.Newer {
		now, err := r.DB.Ent.Order.Get(ctx, o.ID)
		if err != nil {
			return fmt.Errorf("read order %s: %w", o.ID, err)
		}
		report.Concerns = append(report.Concerns, concernOf(OrderBehind, o, string(now.Status)))
	}
	for _, t := range found.Failures {
		report.Concerns = append(report.Concerns, Concern{
			What: FailureMissing, Task: t.ID.Public(), Sale: t.Sale.Public(), User: t.User.Public(), Copy: string(t.Failure),
		})
	}
	return nil
}

func concernOf(what string, o *order.Order, record string) Concern {
	return Concern{
		What: what, Order: o.ID.Public(), Task: id.Task(o.ID).Public(), Sale: o.Sale.Public(), User: o.User.Public(),
		Copy: string(o.Status), Record: record,
	}
}

// since adds what happened after the loss was noticed.
func (r Reporter) since(ctx context.Context, report *Report) error {
	failed, err := r.DB.Ent.OrderFailure.Query().Where(orderfailure.Reason(order.ReasonRecordLost)).Order(ent.Asc(orderfailure.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("read failed tasks: %w", err)
	}
	for _, row := range failed {
		report.Concerns = append(report.Concerns, Concern{
			What: TaskFailed, Task: row.ID.Public(), Sale: row.SaleID.Public(), User: row.UserID.Public(), Record: row.Code,
		})
	}
	held, err := r.DB.Ent.PaymentEvent.Query().Where(paymentevent.StateEQ(paymentevent.StateHELD), paymentevent.CreatedAtGTE(*report.LostAt)).
		Order(ent.Asc(paymentevent.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("read held money: %w", err)
	}
	for _, row := range held {
		amount := money.Amount{Minor: row.AmountMinor, Currency: row.Currency}
		report.Concerns = append(report.Concerns, Concern{
			What: MoneyHeld, Payment: row.PaymentID.Public(), Record: string(row.State),
			Copy: fmt.Sprintf("%s %s at %s, transaction %s", amount.Currency, amount.Decimal(), row.Provider, row.Transaction),
		})
	}
	return nil
}
