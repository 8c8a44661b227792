package audit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/logposition"
	"seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/salelog"
	"seckill/ent/stockmovement"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	sealEvery = 30 * time.Second
	// recent is how far back a pass looks for new entries. Ids say when an entry was made,
	// by the clock of its process; it may appear later. Older ones are found by looking at
	// all of a sale.
	recent = 5 * time.Minute
	// wholeEvery is the pause after which all sales that may still change are looked at again.
	wholeEvery = time.Hour
	// changesFor is how long after its end a sale is among them.
	changesFor = 30 * 24 * time.Hour
	// wholeAtOnce is how many whole sales a pass looks at: tens of thousands of old sales are
	// done after some hours, and no pass takes long.
	wholeAtOnce = 200
	// unsealed bounds the entries that one seal covers: the next pass continues.
	unsealed = 50_000
	// positionsAtOnce bounds the rows of one statement.
	positionsAtOnce = 5000
)

// Sealer writes the seals of all sales. Any number of processes may run it at once: of two
// seals with the same number one is written.
type Sealer struct {
	DB    *postgres.DB
	Clock clock.Clock
	Log   *slog.Logger

	// Used by Step alone.
	looked time.Time // the last pass that failed for no sale; zero before the first
	whole  []id.Sale // sales that are yet to be looked at as a whole
	listed time.Time // when whole was read last
}

// Loop returns the loop that seals.
func (s *Sealer) Loop() periodic.Loop {
	return periodic.Loop{Name: "seal logs", Every: sealEvery, Timeout: sealEvery, Step: s.Step, Log: s.Log}
}

// Step seals the entries that are visible and not sealed. It is a periodic.Step.
func (s *Sealer) Step(ctx context.Context) (map[string]int, error) {
	now := s.Clock.Now().UTC()
	if err := s.list(ctx, now); err != nil {
		return nil, err
	}
	from := before(s.looked.Add(-recent))
	changed, err := s.changed(ctx, from)
	if err != nil {
		return nil, err
	}
	once := min(wholeAtOnce, len(s.whole))
	counts, errs := map[string]int{}, []error(nil)
	sealAll := func(sales []id.Sale, from uuid.UUID) {
		for _, of := range sales {
			sealed, err := s.seal(ctx, of, from, now)
			if err != nil {
				errs = append(errs, fmt.Errorf("seal the log of %s: %w", of.Public(), err))
			}
			if sealed {
				counts["sealed"]++
			}
		}
	}
	sealAll(s.whole[:once], uuid.Nil)
	sealAll(slices.DeleteFunc(changed, func(of id.Sale) bool { return slices.Contains(s.whole[:once], of) }), from)
	if len(errs) == 0 {
		s.looked, s.whole = now, s.whole[once:]
	}
	return counts, errors.Join(errs...)
}

// list reads the sales to be looked at as a whole: all after the start, and those that may
// still change later.
func (s *Sealer) list(ctx context.Context, now time.Time) (err error) {
	first := s.looked.IsZero()
	if !first && (len(s.whole) > 0 || now.Sub(s.listed) < wholeEvery) {
		return nil
	}
	sales := s.DB.Ent.Sale.Query().Order(ent.Desc(sale.FieldID))
	if !first {
		sales.Where(sale.EndsAtGT(now.Add(-changesFor)))
	}
	if s.whole, err = sales.IDs(ctx); err != nil {
		return fmt.Errorf("list sales: %w", err)
	}
	s.listed = now
	if first {
		s.looked = now
	}
	return nil
}

// changed returns the sales that have entries with ids from a given one on.
func (s *Sealer) changed(ctx context.Context, from uuid.UUID) ([]id.Sale, error) {
	var acted []id.Sale
	err := s.DB.Ent.SaleLog.Query().Where(salelog.IDGTE(from), salelog.ActNEQ(ActSeal)).Unique(true).
		Select(salelog.FieldSaleID).Scan(ctx, &acted)
	if err != nil {
		return nil, fmt.Errorf("list sales with acts: %w", err)
	}
	var items []id.Item
	err = s.DB.Ent.StockMovement.Query().Where(stockmovement.IDGTE(from)).Unique(true).Select(stockmovement.FieldItemID).
		Scan(ctx, &items)
	if err != nil {
		return nil, fmt.Errorf("list items that moved: %w", err)
	}
	var moved []id.Sale
	err = s.DB.Ent.SaleItem.Query().Where(saleitem.IDIn(items...)).Unique(true).Select(saleitem.FieldSaleID).
		Scan(ctx, &moved)
	if err != nil {
		return nil, fmt.Errorf("list their sales: %w", err)
	}
	return distinct(acted, moved), nil
}

// distinct joins lists of ids without repetitions.
func distinct(lists ...[]id.Sale) []id.Sale {
	seen := map[id.Sale]bool{}
	var out []id.Sale
	for _, u := range slices.Concat(lists...) {
		if !seen[u] {
			seen[u] = true
			out = append(out, u)
		}
	}
	return out
}

// seal seals the entries of a sale from an id on that have no position, and reports
// whether there were any. An entry that becomes visible later gets a later position,
// however old its id is.
func (s *Sealer) seal(ctx context.Context, of id.Sale, from uuid.UUID, now time.Time) (sealed bool, err error) {
	if some, err := s.hasUnsealed(ctx, of, from); err != nil || !some {
		return false, err
	}
	err = s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		sealed = false
		last, err := lastSeal(ctx, tx.SaleLog, of)
		if err != nil {
			return err
		}
		var c *chain
		next, began := int64(1), format
		if last == nil {
			row, err := tx.Sale.Get(ctx, of)
			if err != nil {
				return fmt.Errorf("read the sale: %w", err)
			}
			if c, err = newChain(startOf(row, nil)); err != nil {
				return err
			}
		} else {
			began = 0 // the first seal has it
			if c, err = continueChain(last); err != nil {
				return err
			}
			next = last.Seq + 1
			if !last.positioned() {
				if err := numberEarlier(ctx, tx, of, last.Until); err != nil {
					return err
				}
			}
		}
		through, err := lastPosition(ctx, tx, of)
		if err != nil {
			return err
		}
		entries, err := readUnsealed(ctx, tx, of, from)
		if err != nil || len(entries) == 0 {
			return err
		}
		entries = entries[:min(len(entries), unsealed)]
		rows := make([]*ent.LogPositionCreate, len(entries))
		for i, e := range entries {
			if _, err := c.add(e); err != nil {
				return err
			}
			through++
			rows[i] = tx.LogPosition.Create().SetID(e.ID).SetSaleID(of).SetPosition(through)
		}
		for part := range slices.Chunk(rows, positionsAtOnce) {
			if err := tx.LogPosition.CreateBulk(part...).Exec(ctx); err != nil {
				return fmt.Errorf("number %d entries: %w", len(part), err)
			}
		}
		sealed = true
		return writeSeal(ctx, tx, of, &Seal{
			Type: typeSeal, Seq: next, Through: through, Until: uuid.Max, Format: began, Entries: c.entries, Head: c.hex(),
			At: now,
		})
	})
	if postgres.IsUnique(err) {
		return false, nil // another process sealed them
	}
	return sealed && err == nil, err
}

// hasUnsealed reports whether seal may find entries.
func (s *Sealer) hasUnsealed(ctx context.Context, of id.Sale, from uuid.UUID) (some bool, err error) {
	err = s.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		last, err := lastSeal(ctx, tx.SaleLog, of)
		if err != nil {
			return err
		}
		if last != nil && !last.positioned() { // by a release that sealed by the clock
			from = last.Until
		}
		acts, items, err := logQueries(ctx, tx, of, from)
		if err != nil {
			return err
		}
		some, err = acts.Where(actWithoutPosition).Exist(ctx)
		if err == nil && !some && items != nil {
			some, err = items.Where(moveWithoutPosition).Exist(ctx)
		}
		return err
	})
	return some, err
}

// numberEarlier gives positions to the entries that were sealed by the clock and the ids:
// in their order, as the seals of that time have them.
func numberEarlier(ctx context.Context, tx *ent.Tx, of id.Sale, until uuid.UUID) error {
	entries, err := readEntries(ctx, tx, of, span{uuid.Nil, until})
	if err != nil {
		return err
	}
	var position int64
	for part := range slices.Chunk(entries, positionsAtOnce) {
		rows := make([]*ent.LogPositionCreate, len(part))
		for i, e := range part {
			position++
			rows[i] = tx.LogPosition.Create().SetID(e.ID).SetSaleID(of).SetPosition(position)
		}
		if err := tx.LogPosition.CreateBulk(rows...).Exec(ctx); err != nil {
			return fmt.Errorf("number sealed entries: %w", err)
		}
	}
	return nil
}

// lastPosition returns the last position in the log of a sale; 0 = none is sealed.
func lastPosition(ctx context.Context, tx *ent.Tx, of id.Sale) (int64, error) {
	row, err := tx.LogPosition.Query().Where(logposition.SaleID(of)).Order(ent.Desc(logposition.FieldPosition)).First(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last position: %w", err)
	}
	return row.Position, nil
}

// actWithoutPosition and moveWithoutPosition select entries that are not sealed.
func actWithoutPosition(q *sql.Selector)  { withoutPosition(q, salelog.FieldID) }
func moveWithoutPosition(q *sql.Selector) { withoutPosition(q, stockmovement.FieldID) }

func withoutPosition(q *sql.Selector, field string) {
	positions := sql.Dialect(q.Dialect()).Table(logposition.Table)
	q.Where(sql.NotExists(sql.Dialect(q.Dialect()).Select(positions.C(logposition.FieldID)).From(positions).
		Where(sql.ColumnsEQ(positions.C(logposition.FieldID), q.C(field)))))
}

// logQueries returns queries of the acts of a sale and of its moves with ids from a given
// one on; nil = it has no items.
func logQueries(ctx context.Context, tx *ent.Tx, of id.Sale, from uuid.UUID) (*ent.SaleLogQuery,
	*ent.StockMovementQuery, error) {
	acts := tx.SaleLog.Query().Where(salelog.SaleID(of), salelog.IDGTE(from), salelog.ActNEQ(ActSeal))
	items, err := tx.SaleItem.Query().Where(saleitem.SaleID(of)).IDs(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the items: %w", err)
	}
	if len(items) == 0 {
		return acts, nil, nil
	}
	return acts, tx.StockMovement.Query().Where(stockmovement.ItemIDIn(items...), stockmovement.IDGTE(from)), nil
}

// readUnsealed returns up to unsealed acts and moves without a position, by id.
func readUnsealed(ctx context.Context, tx *ent.Tx, of id.Sale, from uuid.UUID) ([]Entry, error) {
	acts, moves, err := logQueries(ctx, tx, of, from)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	acted, err := acts.Where(actWithoutPosition).Order(ent.Asc(salelog.FieldID)).Limit(unsealed).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the acts: %w", err)
	}
	for _, row := range acted {
		entries = append(entries, entryOfAct(row))
	}
	if moves != nil {
		moved, err := moves.Where(moveWithoutPosition).Order(ent.Asc(stockmovement.FieldID)).Limit(unsealed).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the moves: %w", err)
		}
		for _, row := range moved {
			entries = append(entries, entryOfMove(row))
		}
	}
	byID(entries)
	return entries, nil
}

// writeSeal stores a seal. Its id follows from sale and number.
func writeSeal(ctx context.Context, tx *ent.Tx, of id.Sale, seal *Seal) error {
	details, err := json.Marshal(seal)
	if err != nil {
		return err
	}
	row, err := tx.Sale.Get(ctx, of)
	if err != nil {
		return err
	}
	return tx.SaleLog.Create().SetID(sealID(of, seal.Seq)).SetSaleID(of).SetAct(ActSeal).SetFromStatus(string(row.Status)).
		SetToStatus(string(row.Status)).SetRevision(row.Revision).SetDetails(string(details)).SetCreatedAt(seal.At).Exec(ctx)
}

func sealID(of id.Sale, seq int64) uuid.UUID {
	return uuid.NewHash(sha256.New(), of.UUID(), fmt.Append(nil, ActSeal, seq), 8)
}

// following returns the id after an id.
func following(u uuid.UUID) uuid.UUID {
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			break
		}
	}
	return u
}

// Seals reads the seals of sales.
type Seals struct{ DB *postgres.DB }

// Last returns the newest seal of a sale; nil = there is none.
func (s Seals) Last(ctx context.Context, of id.Sale) (*Seal, error) {
	return lastSeal(ctx, s.DB.Ent.SaleLog, of)
}

// lastSeal returns the newest seal of a sale; nil = there is none.
func lastSeal(ctx context.Context, logs *ent.SaleLogClient, of id.Sale) (*Seal, error) {
	n, err := logs.Query().Where(salelog.SaleID(of), salelog.Act(ActSeal)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the seals: %w", err)
	}
	if n == 0 {
		return nil, nil
	}
	row, err := logs.Query().Where(salelog.ID(sealID(of, int64(n)))).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, misnumbered(of, n)
	}
	if err != nil {
		return nil, fmt.Errorf("read seal %d: %w", n, err)
	}
	seal, err := sealOf(row)
	if err == nil && seal.Seq != int64(n) {
		err = misnumbered(of, n)
	}
	return seal, err
}

func sealOf(row *ent.SaleLog) (*Seal, error) {
	var seal Seal
	if err := json.Unmarshal([]byte(row.Details), &seal); err != nil {
		return nil, fmt.Errorf("seal %s: %w", row.ID, err)
	}
	return &seal, nil
}

// misnumbered reports that the n seals of a sale are not those from 1 to n.
func misnumbered(of id.Sale, n int) error {
	return fmt.Errorf("the seals of %s are not numbered from 1 to %d", of.Public(), n)
}

// readSeals returns the seals of a sale by number.
func readSeals(ctx context.Context, logs *ent.SaleLogClient, of id.Sale) ([]*Seal, error) {
	rows, err := logs.Query().Where(salelog.SaleID(of), salelog.Act(ActSeal)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the seals: %w", err)
	}
	seals := make([]*Seal, len(rows))
	for _, row := range rows {
		seal, err := sealOf(row)
		if err != nil {
			return nil, err
		}
		if seal.Seq < 1 || seal.Seq > int64(len(rows)) || seals[seal.Seq-1] != nil {
			return nil, misnumbered(of, len(rows))
		}
		seals[seal.Seq-1] = seal
	}
	return seals, nil
}

// readPositions returns the positions of the sealed entries of a sale; none were given by
// releases that sealed by the clock.
func readPositions(ctx context.Context, tx *ent.Tx, of id.Sale) (map[uuid.UUID]int64, error) {
	positions := map[uuid.UUID]int64{}
	for last := int64(0); ; {
		rows, err := tx.LogPosition.Query().Where(logposition.SaleID(of), logposition.PositionGT(last)).
			Order(ent.Asc(logposition.FieldPosition)).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the positions: %w", err)
		}
		for _, row := range rows {
			positions[row.ID], last = row.Position, row.Position
		}
		if len(rows) < page {
			return positions, nil
		}
	}
}

// span selects ids: from <= id < until.
type span struct{ from, until uuid.UUID }

// readEntries returns the entries of a sale in a span, in the order of the chain.
func readEntries(ctx context.Context, tx *ent.Tx, of id.Sale, in span) ([]Entry, error) {
	acts, err := tx.SaleLog.Query().Where(salelog.SaleID(of), salelog.IDGTE(in.from), salelog.IDLT(in.until),
		salelog.ActNEQ(ActSeal)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the acts: %w", err)
	}
	entries := collect.Map(acts, entryOfAct)
	items, err := tx.SaleItem.Query().Where(saleitem.SaleID(of)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the items: %w", err)
	}
	for from := in.from; len(items) > 0; {
		rows, err := tx.StockMovement.Query().Where(stockmovement.ItemIDIn(items...), stockmovement.IDGTE(from),
			stockmovement.IDLT(in.until)).
			Order(ent.Asc(stockmovement.FieldID)).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the moves: %w", err)
		}
		for _, row := range rows {
			entries = append(entries, entryOfMove(row))
		}
		if len(rows) < page {
			break
		}
		from = following(rows[len(rows)-1].ID)
	}
	byID(entries)
	return entries, nil
}
