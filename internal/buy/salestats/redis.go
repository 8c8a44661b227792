package salestats

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func shardOf(sale id.Sale) int { return id.ShardOf(sale) }

// gates are the figures of a sale's units in Redis.
type gates struct {
	total, stock, reserved int
	loaded                 int // items that have a gate
	conserved              bool
}

func (r *Reader) gates(ctx context.Context, sale id.Sale, items []*ent.SaleItem) (gates, error) {
	g := gates{conserved: true}
	pipe := r.cfg.Client.Pipeline()
	cmds := collect.Map(items, func(item *ent.SaleItem) *redis.SliceCmd {
		return pipe.HMGet(ctx, r.cfg.Keys.Item(shardOf(sale), item.ID), "total", "stock", "reserved", "gate")
	})
	if len(cmds) == 0 {
		return g, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return g, fmt.Errorf("read gates: %w", err)
	}
	for _, cmd := range cmds {
		f := cmd.Val()
		total, ok1 := number(f[0])
		stock, ok2 := number(f[1])
		reserved, ok3 := number(f[2])
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		g.loaded++
		g.total, g.stock, g.reserved = g.total+int(total), g.stock+int(stock), g.reserved+int(reserved)
		g.conserved = g.conserved && stock >= 0 && stock+reserved == total
	}
	return g, nil
}

// whole reports that each item of the sale has a gate.
func (g gates) whole(rec *record) bool { return g.loaded > 0 && g.loaded == len(rec.items) }

// agree reports that the gates' total is that in Postgres, but for units that are being
// withdrawn.
func (g gates) agree(rec *record) bool {
	total := rec.total()
	return g.total >= total && g.total <= total+rec.withdrawing
}

// into copies the gates' figures if the whole sale is loaded. A sale whose totals changed
// during the reading is not compared.
func (g gates) into(s *Stats, rec *record, settled bool) {
	if !g.whole(rec) {
		return
	}
	s.Units.Loaded = true
	s.Units.Conserved = s.Units.Conserved && g.conserved && (g.agree(rec) || !settled)
	s.Units.Total, s.Units.Remaining = g.total, g.stock
	s.Units.Offered = min(rec.offered, max(0, g.reserved-s.Units.Held-s.Units.Sold))
	s.Units.InFlight = g.reserved - s.Units.Held - s.Units.Sold - s.Units.Offered
}

func number(field any) (int64, bool) {
	text, ok := field.(string)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// sinceField is the counter field that holds when counting began, as Unix time in ms. It
// is absent from counters that version 0.1 began.
const sinceField = "since"

// counters are the counter fields of a sale.
type counters map[string]int64

// counters reads the counters of a sale: from Redis, unless the stored ones are higher.
// Redis loses them a week after the last count, or when it is flushed, and a late count,
// which any client can cause, starts again from zero.
func (r *Reader) counters(ctx context.Context, sale id.Sale) (counters, error) {
	c, err := r.inRedis(ctx, sale)
	if err != nil {
		return nil, err
	}
	kept, err := r.Kept(ctx, sale)
	if err != nil {
		return nil, err
	}
	if kept != nil && c.lack(kept.Counters) {
		return kept.Counters, nil
	}
	return c, nil
}

// inRedis reads the counters in Redis; nil if there are none.
func (r *Reader) inRedis(ctx context.Context, sale id.Sale) (counters, error) {
	fields, err := r.cfg.Client.HGetAll(ctx, r.cfg.Keys.Stats(shardOf(sale), sale)).Result()
	if err != nil {
		return nil, fmt.Errorf("read counters of sale %s: %w", sale, err)
	}
	if len(fields) == 0 {
		return nil, nil // a nil map reads as empty
	}
	c := make(counters, len(fields))
	for field, text := range fields {
		if strings.HasPrefix(field, "p:") {
			continue
		}
		if n, ok := number(text); ok {
			c[field] = n
		}
	}
	return c, nil
}

// lack reports whether a counter is below its stored value; counters only grow.
func (c counters) lack(kept counters) bool {
	for field, n := range kept {
		if c[field] < n {
			return true
		}
	}
	return false
}

func (c counters) into(s *Stats) {
	s.Requests, s.Accepted, s.Replayed, s.Faulted = c["requests"], c["accepted"], c["replayed"], c["faulted"]
	s.Captchas, s.Paths = c[string(StepCaptcha)], c[string(StepPath)]
	if since := c[sinceField]; since > 0 {
		s.CountedSince = time.UnixMilli(since).UTC()
	}
	took := latencies{}
	for field, n := range c {
		if reason, ok := strings.CutPrefix(field, "r:"); ok {
			s.Refused = append(s.Refused, Rejection{Reason: fault.Reason(reason), Count: n})
		}
		if bucket, ok := strings.CutPrefix(field, "l:"); ok {
			if b, err := strconv.Atoi(bucket); err == nil {
				took[b] = n
			}
		}
	}
	sortRejections(s.Refused)
	s.Gate = c.gates(s)
	s.P50, s.P99 = took.quantile(0.50), took.quantile(0.99)
}

// points reads the last five minutes up to the last whole second.
func (r *Reader) points(ctx context.Context, sale id.Sale, now time.Time, orders map[int64]int) ([]Point, error) {
	end := now.Unix()
	seconds, err := r.seconds(ctx, sale, end-Window, end)
	if err != nil {
		return nil, err
	}
	points := make([]Point, 0, Window)
	for at := end - Window; at < end; at++ {
		p := Point{At: time.Unix(at, 0).UTC(), Orders: orders[at], Remaining: -1}
		if s, ok := seconds[at]; ok {
			p.Requests, p.Accepted, p.Remaining = s.requests, s.accepted, s.remaining
		}
		points = append(points, p)
	}
	return points, nil
}

// counted holds the counts of one second in Redis.
type counted struct{ requests, accepted, remaining int } // remaining -1 = not sampled

// seconds reads the seconds from from until end (exclusive) that have counts.
func (r *Reader) seconds(ctx context.Context, sale id.Sale, from, end int64) (map[int64]counted, error) {
	pipe := r.cfg.Client.Pipeline()
	cmds := map[int64]*redis.MapStringStringCmd{}
	for at := from / stretch; at <= (end-1)/stretch; at++ {
		cmds[at] = pipe.HGetAll(ctx, r.cfg.Keys.Series(shardOf(sale), sale, at))
	}
	if len(cmds) == 0 {
		return nil, nil // a nil map reads as empty
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	out := map[int64]counted{}
	for base, cmd := range cmds {
		for field, text := range cmd.Val() {
			n, ok := number(text)
			offset, err := strconv.ParseInt(field[:max(0, len(field)-1)], 10, 64)
			at := base*stretch + offset
			if !ok || err != nil || at < from || at >= end {
				continue
			}
			s, seen := out[at]
			if !seen {
				s.remaining = -1
			}
			switch field[len(field)-1] {
			case 'q':
				s.requests = int(n)
			case 'a':
				s.accepted = int(n)
			case 'm':
				s.remaining = int(n)
			}
			out[at] = s
		}
	}
	return out, nil
}
