package salestats

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/salefigures"
)

const (
	// maxHistory is how far apart the ends of a history may be.
	maxHistory = 48 * time.Hour
	// maxKept bounds the points that are kept of a sale: a longer one is kept by
	// several seconds each.
	maxKept = 7200
)

// Kept is what is kept of a sale's counters for good.
type Kept struct {
	Counters counters    `json:"counters"`
	Step     int64       `json:"step"`   // seconds that one moment stands for
	Series   []Moment    `json:"series"` // oldest first; moments in which nothing was counted are left out
	Window   [2]UnixTime `json:"window"`
}

// UnixTime is an instant in whole seconds.
type UnixTime int64

// Moment is what was counted within one step.
type Moment struct {
	At        UnixTime `json:"at"`
	Requests  int      `json:"requests"`
	Accepted  int      `json:"accepted"`
	Remaining int      `json:"remaining"` // at its end; -1 = not sampled
}

// Keep writes what Redis has counted of a sale into the record, for good. Doing
// it again replaces it with more, never with less: what Redis has lost stays.
func (r *Reader) Keep(ctx context.Context, sale uuid.UUID) error {
	row, err := r.cfg.DB.Ent.Sale.Get(ctx, sale)
	if err != nil {
		return fmt.Errorf("keep figures of sale %s: %w", sale, err)
	}
	kept, err := r.History(ctx, sale, row.StartsAt.Add(-time.Minute), r.cfg.Clock.Now())
	if err != nil {
		return err
	}
	if kept == nil {
		return nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("keep figures of sale %s: %w", sale, err)
	}
	err = r.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleFigures.Create().SetID(sale).SetFigures(string(text)).SetUpdatedAt(r.cfg.Clock.Now()).
			OnConflictColumns(salefigures.FieldID).UpdateNewValues().Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("keep figures of sale %s: %w", sale, err)
	}
	return nil
}

// Kept returns what was kept of a sale; nil when nothing was.
func (r *Reader) Kept(ctx context.Context, sale uuid.UUID) (*Kept, error) {
	row, err := r.cfg.DB.Ent.SaleFigures.Get(ctx, sale)
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read kept figures of sale %s: %w", sale, err)
	}
	var kept Kept
	if err := json.Unmarshal([]byte(row.Figures), &kept); err != nil {
		return nil, fmt.Errorf("read kept figures of sale %s: %w", sale, err)
	}
	return &kept, nil
}

// History returns what Redis has counted of a sale, by the second or, for a long
// stretch, by several; nil when it has nothing. Where more was kept, it is that.
func (r *Reader) History(ctx context.Context, sale uuid.UUID, from, to time.Time) (*Kept, error) {
	if to.Sub(from) > maxHistory {
		from = to.Add(-maxHistory)
	}
	start, end := from.Unix(), to.Unix()+1
	c, err := r.inRedis(ctx, sale)
	if c == nil || err != nil {
		return nil, err // nothing was counted
	}
	before, err := r.Kept(ctx, sale)
	if err != nil {
		return nil, err
	}
	if before != nil && c.lack(before.Counters) {
		return before, nil
	}
	seconds, err := r.seconds(ctx, sale, start, end)
	if err != nil {
		return nil, err
	}
	kept := &Kept{Counters: c, Step: 1 + int64(len(seconds))/maxKept, Window: [2]UnixTime{UnixTime(start), UnixTime(end)}}
	kept.Series = moments(seconds, kept.Step)
	if before != nil && kept.beginsAfter(before) {
		kept.Step, kept.Series, kept.Window = before.Step, before.Series, before.Window
	}
	return kept, nil
}

// beginsAfter says whether the series lacks the beginning of another: seconds lapse
// long before counters do, the oldest first.
func (k *Kept) beginsAfter(other *Kept) bool {
	if len(k.Series) == 0 || len(other.Series) == 0 {
		return len(other.Series) > 0
	}
	return k.Series[0].At >= other.Series[0].At+UnixTime(max(1, other.Step)) // a moment begins at a multiple of its step
}

// moments joins seconds into steps.
func moments(seconds map[int64]counted, step int64) []Moment {
	times := make([]int64, 0, len(seconds))
	for at := range seconds {
		times = append(times, at)
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	var out []Moment
	for _, at := range times {
		s := seconds[at]
		begin := UnixTime(at - at%step)
		if n := len(out); n == 0 || out[n-1].At != begin {
			out = append(out, Moment{At: begin, Remaining: -1})
		}
		m := &out[len(out)-1]
		m.Requests += s.requests
		m.Accepted += s.accepted
		if s.remaining >= 0 {
			m.Remaining = s.remaining
		}
	}
	return out
}

// Stats returns the part of a Stats that was kept.
func (k *Kept) Stats() *Stats {
	s := &Stats{}
	k.Counters.into(s)
	return s
}
