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

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/salelog"
	"seckill/ent/stockmovement"
	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
)

const (
	// SealLag is the age of an entry when it is sealed. Transactions end within seconds, and
	// an entry of one that is still open would come before those that are sealed.
	SealLag   = time.Minute
	sealEvery = 30 * time.Second
	// recent is how far back a pass looks for sales with new entries. Older ones, of a time
	// without a scheduler, are found by looking at all sales once after the start.
	recent = 5 * time.Minute
	// oldAtOnce is how many of all sales a pass looks at: tens of thousands of old sales are
	// done after some hours, and no pass takes long.
	oldAtOnce = 200
	// unsealed bounds the entries that one seal covers: the next pass continues.
	unsealed = 200_000
)

// Sealer writes the seals of all sales. Any number of processes may run it at once: of two
// seals with the same number one is written.
type Sealer struct {
	DB    *postgres.DB
	Clock clock.Clock
	Log   *slog.Logger
	Lag   time.Duration // 0 = SealLag

	// Used by Step alone.
	looked time.Time // the last pass that failed for no sale; zero before the first
	old    []id.Sale // sales that were not looked at since the start
}

// Loop returns the loop that seals.
func (s *Sealer) Loop() periodic.Loop {
	return periodic.Loop{Name: "seal logs", Every: sealEvery, Timeout: sealEvery, Step: s.Step, Log: s.Log}
}

// Step seals what is old enough. It is a periodic.Step.
func (s *Sealer) Step(ctx context.Context) (map[string]int, error) {
	now := s.Clock.Now().UTC()
	lag := s.Lag
	if lag == 0 {
		lag = SealLag
	}
	if s.looked.IsZero() {
		old, err := s.DB.Ent.Sale.Query().Order(ent.Desc(sale.FieldID)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("list sales: %w", err)
		}
		s.looked, s.old = now, old
	}
	sales, err := s.changed(ctx)
	if err != nil {
		return nil, err
	}
	once := min(oldAtOnce, len(s.old))
	sales = distinct(sales, s.old[:once])
	counts, errs := map[string]int{}, []error(nil)
	for _, of := range sales {
		seal, err := s.seal(ctx, of, before(now.Add(-lag)), now)
		if err != nil {
			errs = append(errs, fmt.Errorf("seal the log of %s: %w", of.Public(), err))
		}
		if seal != nil {
			counts["sealed"]++
		}
	}
	if len(errs) == 0 {
		s.looked, s.old = now, s.old[once:]
	}
	return counts, errors.Join(errs...)
}

// changed returns the sales that have new entries.
func (s *Sealer) changed(ctx context.Context) ([]id.Sale, error) {
	var acted []id.Sale
	from := before(s.looked.Add(-recent))
	err := s.DB.Ent.SaleLog.Query().Where(salelog.IDGTE(from), salelog.ActNEQ(ActSeal)).Unique(true).Select(salelog.FieldSaleID).Scan(ctx, &acted)
	if err != nil {
		return nil, fmt.Errorf("list sales with acts: %w", err)
	}
	var items []id.Item
	err = s.DB.Ent.StockMovement.Query().Where(stockmovement.IDGTE(from)).Unique(true).Select(stockmovement.FieldItemID).Scan(ctx, &items)
	if err != nil {
		return nil, fmt.Errorf("list items that moved: %w", err)
	}
	var moved []id.Sale
	err = s.DB.Ent.SaleItem.Query().Where(saleitem.IDIn(items...)).Unique(true).Select(saleitem.FieldSaleID).Scan(ctx, &moved)
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

// seal seals the entries of a sale with ids below until; nil = there are none.
func (s *Sealer) seal(ctx context.Context, of id.Sale, until uuid.UUID, now time.Time) (*Seal, error) {
	public := of.Public()
	last, err := lastSeal(ctx, s.DB.Ent.SaleLog, of)
	if err != nil {
		return nil, err
	}
	c, next, from := newChain(public), int64(1), uuid.Nil
	if last != nil {
		if c, err = continueChain(last); err != nil {
			return nil, err
		}
		next, from = last.Seq+1, last.Until
	}
	var added int
	err = s.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		entries, err := readEntries(ctx, tx, of, span{from, until})
		if err != nil {
			return err
		}
		if len(entries) > unsealed {
			entries = entries[:unsealed]
			until = following(entries[len(entries)-1].ID)
		}
		added = len(entries)
		for _, e := range entries {
			if _, err := c.add(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || added == 0 {
		return nil, err
	}
	seal := &Seal{Type: typeSeal, Seq: next, Until: until, Entries: c.entries, Head: c.hex(), At: now}
	return seal, s.write(ctx, of, seal)
}

// write stores a seal. Its id follows from sale and number.
func (s *Sealer) write(ctx context.Context, of id.Sale, seal *Seal) error {
	details, err := json.Marshal(seal)
	if err != nil {
		return err
	}
	err = s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Sale.Get(ctx, of)
		if err != nil {
			return err
		}
		return tx.SaleLog.Create().SetID(sealID(of, seal.Seq)).SetSaleID(of).SetAct(ActSeal).SetFromStatus(string(row.Status)).
			SetToStatus(string(row.Status)).SetRevision(row.Revision).SetDetails(string(details)).SetCreatedAt(seal.At).Exec(ctx)
	})
	if postgres.IsUnique(err) {
		return nil // another process wrote it
	}
	return err
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

// span selects ids: from <= id < until.
type span struct{ from, until uuid.UUID }

// readEntries returns the entries of a sale in a span, in the order of the chain.
func readEntries(ctx context.Context, tx *ent.Tx, of id.Sale, in span) ([]Entry, error) {
	acts, err := tx.SaleLog.Query().Where(salelog.SaleID(of), salelog.IDGTE(in.from), salelog.IDLT(in.until), salelog.ActNEQ(ActSeal)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the acts: %w", err)
	}
	entries := make([]Entry, 0, len(acts))
	for _, row := range acts {
		entries = append(entries, entryOfAct(row))
	}
	items, err := tx.SaleItem.Query().Where(saleitem.SaleID(of)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the items: %w", err)
	}
	for from := in.from; len(items) > 0; {
		rows, err := tx.StockMovement.Query().Where(stockmovement.ItemIDIn(items...), stockmovement.IDGTE(from), stockmovement.IDLT(in.until)).
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
