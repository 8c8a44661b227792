package salestats

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/salefigures"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// maxHistory is the maximum length of a history.
	maxHistory = 48 * time.Hour
	// maxKept limits the stored points of a sale: in a longer one each point covers
	// several seconds.
	maxKept = 7200
)

// Kept is the permanent copy of a sale's counters.
type Kept struct {
	Counters counters    `json:"counters"`
	Step     int64       `json:"step"`   // seconds per moment
	Series   []Moment    `json:"series"` // oldest first; moments without counts are omitted
	Window   [2]UnixTime `json:"window"`
}

// UnixTime is a time in whole seconds.
type UnixTime int64

// Moment holds the counts within one step.
type Moment struct {
	At        UnixTime `json:"at"`
	Requests  int      `json:"requests"`
	Accepted  int      `json:"accepted"`
	Remaining int      `json:"remaining"` // at its end; -1 = not sampled
}

// Keep stores the counters in Redis permanently in Postgres. Repeating it only adds to
// the stored figures: what Redis has lost remains stored.
func (r *Reader) Keep(ctx context.Context, sale id.Sale) error {
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
		return postgres.Insert(ctx, tx, sql.Insert(salefigures.Table).Columns(salefigures.FieldID, salefigures.FieldFigures,
			salefigures.FieldUpdatedAt).
			Values(sale, string(text), r.cfg.Clock.Now()).OnConflict(sql.ConflictColumns(salefigures.FieldID),
			sql.ResolveWithNewValues()))
	})
	if err != nil {
		return fmt.Errorf("keep figures of sale %s: %w", sale, err)
	}
	return nil
}

// Kept returns the stored figures of a sale; nil if there are none.
func (r *Reader) Kept(ctx context.Context, sale id.Sale) (*Kept, error) {
	row, err := r.cfg.DB.Ent.SaleFigures.Get(ctx, sale)
	if ent.IsNotFound(err) {
		return nil, nil
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

// History returns the counts of a sale by the second or, for a long period, by several
// seconds; nil if there are none. It returns the stored figures if they are more complete
// than Redis.
func (r *Reader) History(ctx context.Context, sale id.Sale, from, to time.Time) (*Kept, error) {
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

// beginsAfter reports whether the series lacks the beginning of other: series in Redis
// expire long before counters, the oldest first.
func (k *Kept) beginsAfter(other *Kept) bool {
	if len(k.Series) == 0 || len(other.Series) == 0 {
		return len(other.Series) > 0
	}
	return k.Series[0].At >= other.Series[0].At+UnixTime(max(1, other.Step)) // a moment begins at a multiple of its step
}

// moments aggregates seconds into steps.
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

// Stats returns the stored part of a Stats.
func (k *Kept) Stats() *Stats {
	s := &Stats{}
	k.Counters.into(s)
	return s
}
