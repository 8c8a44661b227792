package waitlist

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	"seckill/ent/drawleaves"
	"seckill/ent/itemdraw"
	"seckill/ent/predicate"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// drawEvery is the interval at which draws are looked at: about the delay of each of
	// their steps.
	drawEvery = time.Second
	// drawTimeout is the timeout of one look: numbering a million entries takes less.
	drawTimeout = 5 * time.Minute
	// drawChunk bounds the entries that one statement of a draw reads or numbers.
	drawChunk = 5000
	// drawWriters is the number of transactions that number entries at the same time: each keeps
	// one core of Postgres busy.
	drawWriters = 2
	// leavesPerPart is the number of leaves in a row of DrawLeaves: 128 KiB.
	leavesPerPart = 4096
	// publishWithin bounds the transaction that publishes a root: with the root comes a
	// round that is draw.Lead away, and a later commit would come too near to it.
	publishWithin = draw.Lead / 3
)

// DrawLoop returns the loop that closes, draws and numbers the entries of draws.
func (s *Service) DrawLoop() periodic.Loop {
	return periodic.Loop{Name: "draws", Every: drawEvery, Timeout: drawTimeout, Step: s.DrawStep, Log: s.cfg.Log,
		HasWork: s.cfg.DB.AnyRows(func() *sql.Selector {
			return postgres.Rows(entsale.Table, unsettledDraw, entsale.StatusIn(slices.Concat(drawing, drawnOrNever)...))
		})}
}

// Sales with a draw, and those of them whose draws are made, or never will be.
var (
	unsettledDraw = entsale.And(entsale.EntrySecondsGT(0), entsale.SettledAtIsNil())
	drawing       = []entsale.Status{entsale.StatusPREHEATED, entsale.StatusLIVE, entsale.StatusPAUSED}
	drawnOrNever  = []entsale.Status{entsale.StatusENDED, entsale.StatusCANCELLED}
)

// DrawStep brings each draw whose entries have closed as far as it can go. Several processes may
// do so at the same time, and each may crash anywhere: each step is a compare-and-set on the
// state, and is repeated from what is stored.
func (s *Service) DrawStep(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	failed := []error{s.endUndrawn(ctx, counts)}
	due, err := s.dueDraws(ctx)
	failed = append(failed, err)
	defer func() { s.metrics.setLate(s.longestWait(due)) }()
	for _, d := range due {
		if err := s.advance(ctx, d, counts); err != nil {
			failed = append(failed, fmt.Errorf("draw of item %s: %w", d.Item, err))
		}
	}
	return counts, errors.Join(failed...)
}

// longestWait returns how long the draws have waited for their random value at most.
func (s *Service) longestWait(due []*Drawing) (longest time.Duration) {
	for _, d := range due {
		if d.State == RootPublished {
			longest = max(longest, s.now().Sub(s.waitsSince(d)))
		}
	}
	return longest
}

// endUndrawn ends the entries of draws whose sale is over before they were drawn.
func (s *Service) endUndrawn(ctx context.Context, counts map[string]int) error {
	sales, err := s.cfg.DB.Ent.Sale.Query().Where(unsettledDraw, entsale.StatusIn(drawnOrNever...)).IDs(ctx)
	if err != nil || len(sales) == 0 {
		return err
	}
	draws, err := s.unmade(ctx, sales)
	if err != nil {
		return err
	}
	for _, d := range draws {
		if err := s.endAll(ctx, counts, undrawn(d.Item), entered); err != nil {
			return fmt.Errorf("end the entries of item %s: %w", d.Item, err)
		}
	}
	return nil
}

// dueDraws returns the draws of loaded sales whose entries have to be closed, or are.
func (s *Service) dueDraws(ctx context.Context) ([]*Drawing, error) {
	sales, err := s.cfg.DB.Ent.Sale.Query().Where(unsettledDraw, entsale.StatusIn(drawing...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find draw sales: %w", err)
	}
	var closed []id.Sale
	for _, v := range sales {
		if closes := v.StartsAt.Add(time.Duration(v.EntrySeconds) * time.Second); !s.now().Before(closes) {
			closed = append(closed, v.ID)
		}
	}
	if len(closed) == 0 {
		return nil, nil
	}
	return s.unmade(ctx, closed)
}

// unmade returns the draws of sales that are not made, also of items without an entry.
func (s *Service) unmade(ctx context.Context, sales []id.Sale) ([]*Drawing, error) {
	items, err := s.cfg.DB.Ent.SaleItem.Query().Where(saleitem.SaleIDIn(sales...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read items of draw sales: %w", err)
	}
	ids := collect.Map(items, func(item *ent.SaleItem) id.Item { return item.ID })
	known, err := s.Drawings(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var due []*Drawing
	for _, item := range items {
		d := known[item.ID]
		if d == nil {
			d = &Drawing{Sale: item.SaleID, Item: item.ID, State: TakesEntries}
		}
		if d.State != Drawn {
			due = append(due, d)
		}
	}
	return due, nil
}

// advance takes the steps of a draw until one has to wait.
func (s *Service) advance(ctx context.Context, d *Drawing, counts map[string]int) error {
	for {
		before := d.State
		var err error
		switch before {
		case TakesEntries:
			err = s.closeEntries(ctx, d)
		case EntriesClosed:
			err = s.publishRoot(ctx, d)
		case RootPublished:
			err = s.learnValue(ctx, d)
		case Numbering:
			err = s.number(ctx, d)
		case Drawn:
			return nil
		}
		if err != nil {
			return err
		}
		if d, err = s.Drawing(ctx, d.Item); err != nil || d == nil || d.State == before {
			return err
		}
		counts[string(d.State)]++
	}
}

// move changes the state of a draw, unless another process was faster.
func move(ctx context.Context, tx *ent.Tx, d *Drawing, to DrawState, set func(*ent.ItemDrawUpdate)) (bool, error) {
	update := tx.ItemDraw.Update().Where(itemdraw.ID(d.Item), itemdraw.StateEQ(itemdraw.State(d.State))).
		SetState(itemdraw.State(to))
	if set != nil {
		set(update)
	}
	n, err := update.Save(ctx)
	return n > 0, err
}

// closeEntries lets no further entry in. It waits for transactions that add some, because they
// have locked the row.
func (s *Service) closeEntries(ctx context.Context, d *Drawing) error {
	if err := s.cfg.Shared.Agree(ctx); err != nil {
		return fmt.Errorf("its entries are to be closed: %w", err)
	}
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := createDraw(ctx, tx, d.Sale, d.Item); err != nil {
			return err
		}
		_, err := move(ctx, tx, d, EntriesClosed, func(u *ent.ItemDrawUpdate) { u.SetClosedAt(s.now()) })
		return err
	})
}

// publishRoot ends the entries of users who are disabled, and those whose card is due, computes the
// tree of the others, and publishes its root together with the round whose random value will order
// them. The round follows from the time of publication: a late one moves it on.
func (s *Service) publishRoot(ctx context.Context, d *Drawing) error {
	leaves, err := s.leaves(ctx, d.Item)
	if err != nil {
		return err
	}
	draw.Sort(leaves)
	root := draw.Root(leaves)
	began, now := time.Now(), s.now().Truncate(time.Second)
	published := *d
	now = latest(now, d.ClosedAt.Truncate(time.Second)) // of another process
	published.Root, published.Entries = root[:], len(leaves)
	published.PublishedAt, published.Source = &now, draw.SourceLocal
	switch {
	case s.cfg.Relays != nil:
		published.Source, published.Round = draw.SourceQuicknet, s.cfg.Chain.RoundFor(now)
	case s.cfg.Operators:
		published.Source = draw.SourceOperator
	}
	if s.cfg.Sign != nil {
		if published.Statement, err = s.cfg.Sign(published.record().Commitment()); err != nil {
			return err
		}
	}
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		moved, err := move(ctx, tx, d, RootPublished, func(u *ent.ItemDrawUpdate) {
			u.SetRoot(root[:]).SetEntries(len(leaves)).SetStatement(published.Statement).SetPublishedAt(now).
				SetSource(published.Source).SetRound(int64(published.Round)) // a round every three seconds
		})
		if err != nil || !moved {
			return err
		}
		for first := 0; first < len(leaves); first += leavesPerPart {
			part := leaves[first:min(first+leavesPerPart, len(leaves))]
			if err := tx.DrawLeaves.Create().SetID(id.New[uuid.UUID]()).SetItemID(d.Item).SetFirst(first).
				SetLeaves(joinLeaves(part)).Exec(ctx); err != nil {
				return err
			}
		}
		if took := time.Since(began); took > publishWithin {
			return fmt.Errorf("publish the root: it took %s", took)
		}
		return nil
	})
}

// leaves ends the entries of disabled users, and those whose card is due, and returns the leaves of
// the others.
func (s *Service) leaves(ctx context.Context, item id.Item) ([][32]byte, error) {
	var leaves [][32]byte
	err := s.eachUndrawn(ctx, item, func(ctx context.Context, entries []undrawnEntry) error {
		ending, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(undrawn(item), entered,
			waitlistentry.IDGTE(entries[0].id), waitlistentry.IDLTE(entries[len(entries)-1].id),
			waitlistentry.Or(ofDisabledUser, waitlistentry.CardEQ(waitlistentry.CardDUE))).All(ctx)
		if err != nil {
			return err
		}
		gone := make(map[id.Waitlist]bool, len(ending))
		for _, row := range ending {
			gone[row.ID] = true
		}
		if err := s.end(ctx, ending); err != nil {
			return err
		}
		for _, e := range entries {
			if e.entered && !gone[e.id] {
				leaves = append(leaves, e.leaf)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read its entries: %w", err)
	}
	return leaves, nil
}

var entered = waitlistentry.StatusEQ(waitlistentry.StatusENTERED)

// undrawn matches entries of a draw without a number, also those that left.
func undrawn(item id.Item) predicate.WaitlistEntry {
	return waitlistentry.And(waitlistentry.ItemID(item), waitlistentry.NonceNotNil(), waitlistentry.Line(0))
}

// undrawnEntry is an entry of a draw without a number.
type undrawnEntry struct {
	id      id.Waitlist
	entered bool // it did not leave
	leaf    [32]byte
}

// eachUndrawn calls do with the entries of an item that have no number, in chunks by id. The slice
// is the receiver's.
func (s *Service) eachUndrawn(ctx context.Context, item id.Item,
	do func(ctx context.Context, entries []undrawnEntry) error) error {
	var last id.Waitlist
	for {
		entries, err := s.nextUndrawn(ctx, item, last)
		if err != nil || len(entries) == 0 {
			return err
		}
		last = entries[len(entries)-1].id
		if err := do(ctx, entries); err != nil {
			return err
		}
	}
}

// nextUndrawn returns the entries of an item without a number that follow an id.
func (s *Service) nextUndrawn(ctx context.Context, item id.Item, after id.Waitlist) ([]undrawnEntry, error) {
	rows, err := s.cfg.DB.Ent.QueryContext(ctx, `SELECT id, nonce, status = 'ENTERED' FROM waitlist_entries
		WHERE item_id = $1 AND nonce IS NOT NULL AND line = 0 AND id > $2 ORDER BY item_id, id LIMIT $3`, item, after, drawChunk)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	entries := make([]undrawnEntry, 0, drawChunk)
	var nonce string
	for rows.Next() {
		var e undrawnEntry
		if err := rows.Scan(&e.id, &nonce, &e.entered); err != nil {
			return nil, err
		}
		e.leaf = draw.LeafHash(e.id, nonce)
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// learnValue stores the random value of the round, once there is one.
func (s *Service) learnValue(ctx context.Context, d *Drawing) error {
	if d.Source == draw.SourceOperator {
		return nil // see SetValue
	}
	set := func(u *ent.ItemDrawUpdate) { u.SetValue(rand.Text()) }
	if d.Round > 0 {
		if s.cfg.Relays == nil {
			return errors.New("it waits for a beacon, and no relay is configured")
		}
		if s.now().Before(s.cfg.Chain.RoundTime(d.Round)) {
			return nil
		}
		signature, err := s.cfg.Relays.Fetch(ctx, d.Round)
		if err != nil {
			return fmt.Errorf("it waits for its random value: %w", err)
		}
		set = func(u *ent.ItemDrawUpdate) { u.SetSignature(signature) }
	}
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, err := move(ctx, tx, d, Numbering, set)
		return err
	})
}

// randomness returns the random value that orders the entries of a draw.
func (s *Service) randomness(d *Drawing) ([32]byte, error) {
	if d.Round == 0 {
		return draw.ValueRandomness(d.Value), nil
	}
	return s.cfg.Chain.Verify(d.Round, d.Signature)
}

// number gives each entry its number: that of its leaf in the order of the draw. Entries that
// left after the root was published keep their number, and are skipped.
func (s *Service) number(ctx context.Context, d *Drawing) error {
	randomness, err := s.randomness(d)
	if err != nil {
		return err
	}
	leaves, err := s.leavesOf(ctx, d.Item, d.Entries)
	if err != nil {
		return err
	}
	order, lines := draw.Order(randomness, leaves), make([]int64, len(leaves))
	for rank, index := range order {
		lines[index] = int64(rank) + 1
	}
	writes, writing := errgroup.WithContext(ctx)
	writes.SetLimit(1)
	if s.cfg.DB.Dialect == dialect.Postgres { // SQLite has one writer
		writes.SetLimit(drawWriters)
	}
	err = s.eachUndrawn(ctx, d.Item, func(_ context.Context, entries []undrawnEntry) error {
		drawn := make([]ticket, 0, len(entries))
		for _, e := range entries {
			index, found := slices.BinarySearchFunc(leaves, e.leaf, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
			switch {
			case found:
				drawn = append(drawn, ticket{e.id, lines[index]})
			case e.entered:
				return fmt.Errorf("entry %s is not in the published tree", e.id)
			}
		}
		if len(drawn) > 0 {
			writes.Go(func() error {
				return s.cfg.DB.WithTx(writing, func(ctx context.Context, tx *ent.Tx) error { return s.writeLines(ctx, tx, drawn) })
			})
		}
		return writing.Err()
	})
	if err = cmp.Or(writes.Wait(), err); err != nil {
		return fmt.Errorf("number its entries: %w", err)
	}
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		moved, err := move(ctx, tx, d, Drawn, func(u *ent.ItemDrawUpdate) { u.SetDrawnAt(s.now()) })
		if err != nil || !moved {
			return err
		}
		return writeRanked(ctx, tx, d.Item, order)
	})
}

// writeRanked writes the order of a draw beside its leaves.
func writeRanked(ctx context.Context, tx *ent.Tx, item id.Item, order []int) error {
	for first := 0; first < len(order); first += leavesPerPart {
		part := order[first:min(first+leavesPerPart, len(order))]
		ranked := make([]byte, 0, 4*len(part))
		for _, index := range part {
			ranked = binary.BigEndian.AppendUint32(ranked, uint32(index)) // an index of leaves
		}
		err := tx.DrawLeaves.Update().Where(drawleaves.ItemID(item), drawleaves.First(first)).SetRanked(ranked).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// ticket is an entry and its number.
type ticket struct {
	entry id.Waitlist
	line  int64
}

// writeLines writes the numbers of entries. Those that did not leave wait from then on.
func (s *Service) writeLines(ctx context.Context, tx *ent.Tx, drawn []ticket) error {
	const set = `UPDATE waitlist_entries SET line = drawn.line, version = version + 1, updated_at = $1,
		status = CASE status WHEN 'ENTERED' THEN 'WAITING' ELSE status END FROM `
	if s.cfg.DB.Dialect == dialect.Postgres {
		_, err := tx.ExecContext(ctx,
			set+`unnest($2::uuid[], $3::bigint[]) AS drawn (id, line) WHERE waitlist_entries.id = drawn.id AND waitlist_entries.line = 0`,
			s.now(), postgres.Array(drawn, func(dst []byte, t ticket) []byte { return postgres.AppendUUID(dst, t.entry) }),
			postgres.Array(drawn, func(dst []byte, t ticket) []byte { return strconv.AppendInt(dst, t.line, 10) }))
		return err
	}
	lines := make(map[string]int64, len(drawn))
	for _, t := range drawn {
		lines[t.entry.String()] = t.line
	}
	text, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, set+`(SELECT key AS id, value AS line FROM json_each($2)) AS drawn
		WHERE waitlist_entries.id = drawn.id AND waitlist_entries.line = 0`, s.now(), string(text))
	return err
}

// parts calls do with a field of the parts of the published lists of a draw, in their order, until
// it returns false.
func (s *Service) parts(ctx context.Context, item id.Item, field string, do func(*ent.DrawLeaves) bool) error {
	for first := 0; ; first += leavesPerPart {
		part, err := s.cfg.DB.Ent.DrawLeaves.Query().Where(drawleaves.ItemID(item), drawleaves.First(first)).
			Select(field).Only(ctx)
		if ent.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read leaves of item %s: %w", item, err)
		}
		if !do(part) {
			return nil
		}
	}
}

// leavesOf returns the published leaves of a draw, in their order.
func (s *Service) leavesOf(ctx context.Context, item id.Item, count int) ([][32]byte, error) {
	leaves := make([][32]byte, 0, count)
	err := s.parts(ctx, item, drawleaves.FieldLeaves, func(part *ent.DrawLeaves) bool {
		leaves = appendLeaves(leaves, part.Leaves)
		return true
	})
	return leaves, err
}

func appendLeaves(leaves [][32]byte, joined []byte) [][32]byte {
	for leaf := range slices.Chunk(joined, 32) {
		leaves = append(leaves, [32]byte(leaf))
	}
	return leaves
}

func joinLeaves(leaves [][32]byte) []byte {
	joined := make([]byte, 0, 32*len(leaves))
	for i := range leaves {
		joined = append(joined, leaves[i][:]...)
	}
	return joined
}

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
