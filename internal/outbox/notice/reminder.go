package notice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/ent/salereminder"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// maxReminders bounds the reminders of a user.
	maxReminders = 100
	// reminderBatch bounds the reminders of one transaction.
	reminderBatch = 200
)

// Opening is a sale and when it opens.
type Opening struct {
	Sale id.Sale
	At   time.Time
}

// Reminder is the reminder of a sale, as its user sees it.
type Reminder struct {
	Set      bool
	At       time.Time // when it is sent, or would be
	Channels []Channel // by which it reaches the user; none = it does not
}

// Reminder returns the reminder of a user of a sale.
func (s *Service) Reminder(ctx context.Context, user id.User, opening Opening) (Reminder, error) {
	set, err := s.cfg.DB.Ent.SaleReminder.Query().Where(salereminder.SaleID(opening.Sale), salereminder.UserID(user)).
		Exist(ctx)
	if err != nil {
		return Reminder{}, fmt.Errorf("read reminder: %w", err)
	}
	settings, err := s.Settings(ctx, user)
	if err != nil {
		return Reminder{}, err
	}
	chosen := settings.Choices[slices.IndexFunc(settings.Choices, func(c Choice) bool { return c.Kind == SaleReminder })]
	channels := slices.DeleteFunc(settings.Channels, func(c Channel) bool { return !chosen.wants(c) })
	return Reminder{Set: set, At: opening.At.Add(-s.cfg.Opening), Channels: channels}, nil
}

// Remind sets a reminder of a sale. Setting it again changes nothing. Refusals: CONFLICT
// when the sale has opened, or the user has 100 reminders.
func (s *Service) Remind(ctx context.Context, user id.User, opening Opening) error {
	if !opening.At.After(s.now()) {
		return fault.Refused{Why: fault.Conflict, At: []string{"saleId"}}
	}
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		mine := salereminder.UserID(user)
		if known, err := tx.SaleReminder.Query().Where(mine, salereminder.SaleID(opening.Sale)).Exist(ctx); err != nil ||
			known {
			return err
		}
		n, err := tx.SaleReminder.Query().Where(mine).Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxReminders {
			return fault.Refused{Why: fault.Conflict, At: []string{}}
		}
		return tx.SaleReminder.Create().SetID(id.New[uuid.UUID]()).SetUserID(user).SetSaleID(opening.Sale).
			SetCreatedAt(s.now()).Exec(ctx)
	})
	if err != nil && !postgres.IsUnique(err) { // another request of the user set it
		return fmt.Errorf("set reminder: %w", err)
	}
	return nil
}

// ForgetReminder removes a reminder of a sale. Removing it again changes nothing.
func (s *Service) ForgetReminder(ctx context.Context, user id.User, saleID id.Sale) error {
	if _, err := s.cfg.DB.Ent.SaleReminder.Delete().Where(salereminder.SaleID(saleID), salereminder.UserID(user)).
		Exec(ctx); err != nil {
		return fmt.Errorf("remove reminder: %w", err)
	}
	return nil
}

// opens are the states of sales that will open at their time.
var opens = []sale.Status{sale.StatusAPPROVED, sale.StatusSCHEDULED, sale.StatusPREHEATED}

// remind writes the notices of sales that open soon, and returns their number. A reminder
// whose sale was postponed after its notice gets another one.
func (s *Service) remind(ctx context.Context) (n int, err error) {
	now := s.now()
	sales, err := s.cfg.DB.Ent.Sale.Query().
		Where(sale.StartsAtGT(now), sale.StartsAtLTE(now.Add(s.cfg.Opening)), sale.StatusIn(opens...), hasReminder).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("find sales with reminders: %w", err)
	}
	for _, row := range sales {
		m, err := s.remindOf(ctx, row)
		n += m
		if err != nil {
			return n, fmt.Errorf("remind of sale %s: %w", row.ID, err)
		}
	}
	return n, nil
}

// hasReminder matches sales with a reminder.
func hasReminder(q *sql.Selector) {
	r := sql.Table(salereminder.Table).As("reminder")
	q.Where(sql.Exists(sql.Dialect(q.Dialect()).Select(r.C(salereminder.FieldID)).From(r).
		Where(sql.ColumnsEQ(r.C(salereminder.FieldSaleID), q.C(sale.FieldID)))))
}

// remindOf writes the notices of one sale, in batches.
func (s *Service) remindOf(ctx context.Context, opening *ent.Sale) (n int, err error) {
	for {
		size := 0
		err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			query := tx.SaleReminder.Query().Where(salereminder.SaleID(opening.ID),
				salereminder.Or(salereminder.SentForIsNil(), salereminder.SentForNEQ(opening.StartsAt))).Limit(reminderBatch)
			postgres.SkipLocked(s.cfg.DB.Dialect, query)
			rows, err := query.All(ctx)
			if size = len(rows); err != nil || size == 0 {
				return err
			}
			ids, notices := make([]uuid.UUID, size), make([]notice, size)
			for i, row := range rows {
				ids[i] = row.ID
				notices[i] = notice{user: row.UserID, subject: opening.ID.UUID(), kind: SaleReminder,
					content: openingContent(opening), until: opening.StartsAt}
			}
			if err := s.dispatch(ctx, tx, notices); err != nil {
				return err
			}
			return tx.SaleReminder.Update().Where(salereminder.IDIn(ids...)).SetSentFor(opening.StartsAt).Exec(ctx)
		})
		if n += size; err != nil || size < reminderBatch {
			return n, err
		}
	}
}
