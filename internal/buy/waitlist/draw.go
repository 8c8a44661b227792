package waitlist

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/itemdraw"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// DrawState is the state of the draw of an item.
type DrawState string

// States of a draw, in their order.
const (
	TakesEntries  DrawState = "ENTRIES"
	EntriesClosed DrawState = "CLOSED"    // no entry is added; the tree is computed
	RootPublished DrawState = "PUBLISHED" // the root is public, the random value does not exist or is not known
	Numbering     DrawState = "NUMBERING" // the random value is known, entries get their numbers
	Drawn         DrawState = "DRAWN"     // every entry has its number; offers are made along them
)

// Drawing is the draw of an item.
type Drawing struct {
	Sale        id.Sale
	Item        id.Item
	State       DrawState
	Entries     int    // open ones; from PUBLISHED on those in the tree
	Root        []byte // of the tree of the entries
	Statement   string // draw.Commitment, signed
	Source      string // of the random value that orders the entries
	Round       uint64 // of the source; 0 = it has none
	Signature   []byte // of the round
	Value       string // of a source without rounds
	ValueSource string // where operators read Value
	ClosedAt    *time.Time
	PublishedAt *time.Time
	DrawnAt     *time.Time
}

func drawingOf(row *ent.ItemDraw) *Drawing {
	return &Drawing{
		Sale: row.SaleID, Item: row.ID, State: DrawState(row.State), Entries: row.Entries, Root: row.Root,
		Statement: row.Statement, Round: uint64(row.Round), Source: row.Source,
		Signature: row.Signature, Value: row.Value, ValueSource: row.ValueSource,
		ClosedAt: clock.UTC(row.ClosedAt), PublishedAt: clock.UTC(row.PublishedAt), DrawnAt: clock.UTC(row.DrawnAt),
	}
}

// Drawing returns the draw of an item; nil before its first entry.
func (s *Service) Drawing(ctx context.Context, item id.Item) (*Drawing, error) {
	row, err := s.cfg.DB.Ent.ItemDraw.Get(ctx, item)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read draw of item %s: %w", item, err)
	}
	return drawingOf(row), nil
}

// Drawings returns the draws of items, by item. Those without an entry have none.
func (s *Service) Drawings(ctx context.Context, items ...id.Item) (map[id.Item]*Drawing, error) {
	if len(items) == 0 {
		return nil, nil
	}
	rows, err := s.cfg.DB.Ent.ItemDraw.Query().Where(itemdraw.IDIn(items...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read draws: %w", err)
	}
	draws := make(map[id.Item]*Drawing, len(rows))
	for _, row := range rows {
		draws[row.ID] = drawingOf(row)
	}
	return draws, nil
}

// countEntries adds entries to the count of a draw, in the transaction that writes them. The row
// stays locked until its commit: closing the draw waits for it, and refuses the later ones with
// fault.EntriesClosed, whatever their clocks say.
func countEntries(ctx context.Context, tx *ent.Tx, sale id.Sale, item id.Item, entries int) error {
	for range 2 {
		n, err := tx.ItemDraw.Update().Where(itemdraw.ID(item), itemdraw.StateEQ(itemdraw.StateENTRIES)).
			AddEntries(entries).Save(ctx)
		if err != nil || n > 0 {
			return err
		}
		if err := createDraw(ctx, tx, sale, item); err != nil {
			return err
		}
	}
	return fault.Refused{Why: fault.EntriesClosed, At: atItem}
}

// uncountEntries takes entries that end from the count of a draw that is not closed.
func uncountEntries(ctx context.Context, tx *ent.Tx, item id.Item, entries int) error {
	return tx.ItemDraw.Update().Where(itemdraw.ID(item), itemdraw.StateEQ(itemdraw.StateENTRIES)).
		AddEntries(-entries).Exec(ctx)
}

// createDraw creates the draw of an item unless it exists.
func createDraw(ctx context.Context, tx *ent.Tx, sale id.Sale, item id.Item) error {
	return postgres.Insert(ctx, tx, sql.Insert(itemdraw.Table).
		Columns(itemdraw.FieldID, itemdraw.FieldSaleID, itemdraw.FieldState, itemdraw.FieldEntries, itemdraw.FieldStatement,
			itemdraw.FieldRound, itemdraw.FieldSource, itemdraw.FieldValue, itemdraw.FieldValueSource, itemdraw.FieldTold).
		Values(item, sale, itemdraw.StateENTRIES, 0, "", 0, "", "", "", 0).
		OnConflict(sql.ConflictColumns(itemdraw.FieldID), sql.DoNothing()))
}

// maxPoints bounds the intervals of EntriesOverTime.
const maxPoints = 500

// EntriesPoint is the number of entries that were made in an interval.
type EntriesPoint struct {
	At      time.Time // its start
	Entries int       // also those that were left later
}

// EntriesOverTime counts the entries of the draw of an item by minutes, or by the longer intervals
// of which at most 500 are in its entry window. Intervals without an entry are left out.
func (s *Service) EntriesOverTime(ctx context.Context, item id.Item, window time.Duration) (every time.Duration,
	points []EntriesPoint, err error) {
	const widest = maxPoints * time.Minute                 // of a window with intervals of a minute
	every = time.Minute * ((window + widest - 1) / widest) //nolint:durationcheck // the quotient is a count
	epoch := "CAST(extract(epoch FROM created_at) AS bigint)"
	if s.cfg.DB.Dialect == dialect.SQLite {
		epoch = "CAST(strftime('%s', created_at) AS integer)"
	}
	rows, err := s.cfg.DB.Ent.QueryContext(ctx, `SELECT `+epoch+` / $1 AS slot, count(*) FROM waitlist_entries
		WHERE item_id = $2 AND nonce IS NOT NULL GROUP BY 1 ORDER BY 1 DESC LIMIT $3`, int64(every.Seconds()), item, maxPoints)
	if err != nil {
		return 0, nil, fmt.Errorf("count entries of item %s: %w", item, err)
	}
	defer rows.Close()
	for rows.Next() {
		var slot int64
		var p EntriesPoint
		if err := rows.Scan(&slot, &p.Entries); err != nil {
			return 0, nil, fmt.Errorf("count entries of item %s: %w", item, err)
		}
		p.At = time.Unix(slot*int64(every.Seconds()), 0).UTC()
		points = append(points, p)
	}
	slices.Reverse(points)
	return every, points, rows.Err()
}
