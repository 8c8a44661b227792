package operator_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
)

func TestTheValueOfADrawNeedsTwoPersons(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		line := waitlist.New(waitlist.Config{DB: e.db, Clock: e.clock, Operators: true, Log: slog.New(slog.DiscardHandler)})
		cfg := e.config(nil)
		cfg.Waitlist = line
		ops := operator.New(cfg)
		v := e.put(sale.Live, 5)
		item := v.Items[0].ID
		enter := func(by sale.Actor, value string) (*operator.Intervention, error) {
			return ops.EnterDrawValue(t.Context(), operator.DrawValueInput{By: by, Item: item, Value: value, Source: "Lotto", Note: "drawn on TV"})
		}
		decide := func(by sale.Actor, act *operator.Intervention) (*operator.Intervention, error) {
			return ops.Decide(t.Context(), operator.DecideInput{By: by, Intervention: act.ID, Confirm: true})
		}
		if _, err := enter(ann, "17 4 29"); fault.ReasonOf(err) != fault.Unknown {
			t.Errorf("of an item without a draw: %v", err)
		}
		e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO item_draws (id, sale_id, state, entries, published_at, root, statement, round, source, value, value_source, told)
				VALUES ($1, $2, 'PUBLISHED', 0, $3, $4, '', 0, 'operator', '', '', 0)`, item, v.ID, e.clock.Now(), make([]byte, 32))
			return err
		}))
		if _, err := enter(ann, "17 4 29"); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("before others could note the root: %v", err)
		}
		e.clock.Advance(draw.ValueDelay)
		if _, err := enter(ann, " "); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("no value: %v", err)
		}
		asked, err := enter(ann, "17 4 29")
		if e.must(err); asked.State != operator.Requested || asked.Kind != operator.DrawValue || len(asked.Changes()) != 2 {
			t.Errorf("asked %+v", asked)
		}
		if again, err := enter(ann, "17 4 29"); err != nil || again.ID != asked.ID {
			t.Errorf("asked again: %+v %v", again, err)
		}
		other, err := enter(bob, "1 2 3")
		e.must(err)
		if _, err := decide(ann, asked); !errors.As(err, new(operator.SelfApproval)) {
			t.Errorf("confirmed by the same person: %v", err)
		}
		done, err := decide(bob, asked)
		if e.must(err); done.State != operator.Done {
			t.Errorf("confirmed %+v", done)
		}
		d, err := line.Drawing(t.Context(), item)
		if e.must(err); d.State != waitlist.Numbering || d.Value != "17 4 29" || d.ValueSource != "Lotto" {
			t.Errorf("the draw is %+v", d)
		}
		if now, err := decide(ann, other); fault.ReasonOf(err) != fault.Conflict || now.State != operator.Refused {
			t.Errorf("a second value: %+v %v", now, err)
		}
		log, err := e.db.Ent.SaleLog.Query().All(t.Context())
		e.must(err)
		if last := log[len(log)-1]; last.Act != string(sale.ActValue) {
			t.Errorf("the log ends with %s", last.Act)
		}
		e.clock.Advance(time.Hour)
		if _, err := enter(ann, "17 4 29"); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("after the value is known: %v", err)
		}
	})
}
