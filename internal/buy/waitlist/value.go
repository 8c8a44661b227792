package waitlist

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/itemdraw"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// lateAfter is how long a draw waits for its round before a person has to look: a relay that is
// away for minutes is asked again.
const lateAfter = time.Hour

// waitsSince returns since when the random value of a published draw can be known.
func (s *Service) waitsSince(d *Drawing) time.Time {
	if d.Round > 0 {
		return s.cfg.Chain.RoundTime(d.Round)
	}
	return d.PublishedAt.Add(draw.ValueDelay)
}

// TakesValue reports whether operators can enter the value of a draw now.
func (d *Drawing) TakesValue(now time.Time) bool {
	return d.State == RootPublished && d.Source == draw.SourceOperator && !now.Before(d.PublishedAt.Add(draw.ValueDelay))
}

// SetValue sets the value of a draw that operators entered, in their transaction. It returns false
// for a draw that does not take one now.
func (s *Service) SetValue(ctx context.Context, tx *ent.Tx, item id.Item, value, source string) (bool, error) {
	row, err := tx.ItemDraw.Get(ctx, item)
	if err != nil {
		return false, fmt.Errorf("read draw of item %s: %w", item, err)
	}
	d := drawingOf(row)
	if !d.TakesValue(s.now()) {
		return false, nil
	}
	return move(ctx, tx, d, Numbering, func(u *ent.ItemDrawUpdate) { u.SetValue(value).SetValueSource(source) })
}

// LateDraw is a draw that waits for its random value.
type LateDraw struct {
	*Drawing

	Since time.Time // since when the value can be known
}

// LateDraws returns the draws whose round is an hour late, and those whose value operators can
// enter.
func (s *Service) LateDraws(ctx context.Context) ([]LateDraw, error) {
	rows, err := s.cfg.DB.Ent.ItemDraw.Query().Where(itemdraw.StateEQ(itemdraw.StatePUBLISHED)).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	sales := collect.Map(rows, func(row *ent.ItemDraw) id.Sale { return row.SaleID })
	ended, err := s.cfg.DB.Ent.Sale.Query().
		Where(entsale.IDIn(sales...), entsale.StatusIn(entsale.StatusENDED, entsale.StatusCANCELLED)).IDs(ctx)
	if err != nil {
		return nil, err
	}
	over := collect.Set(ended)
	var late []LateDraw
	for _, row := range rows {
		d := drawingOf(row)
		since := s.waitsSince(d)
		from := since
		if d.Round > 0 {
			from = since.Add(lateAfter)
		}
		if !over[d.Sale] && !s.now().Before(from) {
			late = append(late, LateDraw{d, since})
		}
	}
	return late, nil
}
