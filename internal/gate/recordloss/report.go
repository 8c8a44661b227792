package recordloss

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/ent/recordmark"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

const (
	// keepConcerns is how long Redis has what a loss concerns.
	keepConcerns = 30 * 24 * time.Hour
	// maxConcerns bounds them: the restore of an old backup concerns every order since.
	maxConcerns = 100_000
)

// What is concerned by a loss of commits.
const (
	OrderMissing   = "ORDER_MISSING"   // Redis had a copy of an order that Postgres did not have
	OrderBehind    = "ORDER_BEHIND"    // Redis had a newer state of an order
	FailureMissing = "FAILURE_MISSING" // Redis had a failed task that Postgres did not have
	MoneyHeld      = "MONEY_HELD"      // money of a payment that Postgres does not know waits for an operator
)

// Concern is an order, a task or a payment that a loss of commits concerns.
type Concern struct {
	What    string `json:"what"`
	Order   string `json:"orderId,omitempty"`
	Task    string `json:"taskId,omitempty"`
	Payment string `json:"paymentId,omitempty"` // of an order: the last that Postgres has
	Sale    string `json:"saleId,omitempty"`
	User    string `json:"userId,omitempty"`
	Copy    string `json:"copy,omitempty"` // state in Redis, or what the provider reported
	// state in Postgres now: of the order, of the money, or the code of the failure
	Record string `json:"record,omitempty"`
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
	Redis  *redisconn.Conn
	Keys   reservation.Keys
	Cache  *order.Cache
	Orders *order.Store
}

func concernsKey(keys reservation.Keys, lost int64) string {
	return keyOf(keys, "concerns:"+strconv.FormatInt(lost, 10))
}

// note remembers what the loss at a mark concerns.
func (w *Watch) note(ctx context.Context, lost int64, found order.Unrecorded) error {
	concerns := concernsOf(found)
	if len(concerns) == 0 {
		return nil
	}
	key := concernsKey(w.cfg.Keys, lost)
	n, err := w.cfg.Redis.Cmd.HLen(ctx, key).Result()
	if err == nil && n+int64(len(concerns)) > maxConcerns {
		return nil
	}
	if err == nil {
		pipe := w.cfg.Redis.Cmd.Pipeline()
		for _, c := range concerns {
			text, err := json.Marshal(c)
			if err != nil {
				return err
			}
			pipe.HSetNX(ctx, key, c.Task, text) // a repetition may find a later state
		}
		pipe.Expire(ctx, key, keepConcerns)
		_, err = pipe.Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("note what the loss concerns: %w", err)
	}
	return nil
}

// concernsOf returns what copies have that Postgres has not.
func concernsOf(found order.Unrecorded) (concerns []Concern) {
	for what, orders := range map[string][]*order.Order{OrderMissing: found.Orders, OrderBehind: found.Newer} {
		for _, o := range orders {
			concerns = append(concerns, Concern{
				What: what, Order: o.ID.Public(), Task: id.Task(o.ID).Public(), Sale: o.Sale.Public(), User: o.User.Public(),
				Copy: string(o.Status),
			})
		}
	}
	for _, t := range found.Failures {
		concerns = append(concerns, Concern{
			What: FailureMissing, Task: t.ID.Public(), Sale: t.Sale.Public(), User: t.User.Public(), Copy: string(t.Failure),
		})
	}
	return concerns
}

// Report lists what was noted in the recovery from the last loss, what copies in Redis have
// that Postgres has not now, and the money that is held since.
func (r Reporter) Report(ctx context.Context) (*Report, error) {
	report := &Report{Recovered: true, Concerns: []Concern{}}
	byTask := map[string]Concern{}
	row, err := r.DB.Ent.RecordMark.Query().Where(recordmark.ID(markID)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("read the mark: %w", err)
	}
	if row != nil && row.LostAt != nil {
		at := row.LostAt.UTC()
		report.LostAt, report.Recovered = &at, row.Recovered >= row.Lost
		if err := r.noted(ctx, row.Lost, byTask); err != nil {
			return nil, err
		}
	}
	err = r.Cache.EachCopy(ctx, r.Keys.AnyTasks(), func(copies []order.Copy) error {
		found, err := r.Orders.Unrecorded(ctx, copies)
		for _, c := range concernsOf(found) {
			if _, known := byTask[c.Task]; !known {
				byTask[c.Task] = c
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range byTask {
		report.Concerns = append(report.Concerns, c)
	}
	slices.SortFunc(report.Concerns, func(a, b Concern) int { return cmp.Compare(a.Task, b.Task) })
	for part := range slices.Chunk(report.Concerns, idChunk) {
		if err := r.complete(ctx, part); err != nil {
			return nil, err
		}
	}
	if report.LostAt == nil {
		return report, nil
	}
	held, err := r.held(ctx, *report.LostAt)
	report.Concerns = append(report.Concerns, held...)
	return report, err
}

// idChunk bounds the ids in one query.
const idChunk = 500

// noted reads what was noted in the recovery from the loss at a mark.
func (r Reporter) noted(ctx context.Context, lost int64, byTask map[string]Concern) error {
	texts, err := r.Redis.Cmd.HGetAll(ctx, concernsKey(r.Keys, lost)).Result()
	if err != nil {
		return fmt.Errorf("read what the loss concerns: %w", err)
	}
	for task, text := range texts {
		var c Concern
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return fmt.Errorf("read what the loss concerns: %w", err)
		}
		byTask[task] = c
	}
	return nil
}

// complete adds what Postgres has now.
func (r Reporter) complete(ctx context.Context, concerns []Concern) error {
	tasks := make([]id.Task, len(concerns))
	at := make(map[id.Task]*Concern, len(concerns))
	for i := range concerns {
		task, err := id.ParseTask(concerns[i].Task)
		if err != nil {
			return fmt.Errorf("read what the loss concerns: %w", err)
		}
		tasks[i], at[task] = task, &concerns[i]
	}
	orders, err := r.DB.Ent.Order.Query().Where(entorder.IDIn(id.As[id.Order](tasks)...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	for _, row := range orders {
		at[id.Task(row.ID)].Record = string(row.Status)
	}
	failed, err := r.DB.Ent.OrderFailure.Query().Where(orderfailure.IDIn(tasks...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read failed tasks: %w", err)
	}
	for _, row := range failed {
		at[row.ID].Record = row.Code
	}
	payments, err := r.DB.Ent.Payment.Query().Where(entpayment.OrderIDIn(id.As[id.Order](tasks)...)).
		Order(ent.Asc(entpayment.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("read payments: %w", err)
	}
	for _, row := range payments {
		at[id.Task(row.OrderID)].Payment = row.ID.Public()
	}
	return nil
}

func (r Reporter) held(ctx context.Context, since time.Time) (concerns []Concern, err error) {
	rows, err := r.DB.Ent.PaymentEvent.Query().Where(paymentevent.StateEQ(paymentevent.StateHELD),
		paymentevent.CreatedAtGTE(since)).
		Order(ent.Asc(paymentevent.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read held money: %w", err)
	}
	for _, row := range rows {
		amount := money.Amount{Minor: row.AmountMinor, Currency: row.Currency}
		concerns = append(concerns, Concern{
			What: MoneyHeld, Payment: row.PaymentID.Public(), Record: string(row.State),
			Copy: fmt.Sprintf("%s %s at %s, transaction %s", amount.Currency, amount.Decimal(), row.Provider, row.Transaction),
		})
	}
	return concerns, nil
}
