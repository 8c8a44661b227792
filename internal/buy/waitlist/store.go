package waitlist

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/waitlistentry"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// Entry returns an entry, or nil.
func (s *Service) Entry(ctx context.Context, entry id.Waitlist) (*Entry, error) {
	return one(s.cfg.DB.Ent.WaitlistEntry.Get(ctx, entry))
}

// Open returns the open entry of a user for an item, or nil.
func (s *Service) Open(ctx context.Context, user id.User, item id.Item) (*Entry, error) {
	return one(s.cfg.DB.Ent.WaitlistEntry.Query().
		Where(waitlistentry.UserID(user), waitlistentry.ItemID(item), waitlistentry.StatusIn(openStatuses...)).Only(ctx))
}

// buyer is a user in a sale.
type buyer struct {
	user id.User
	sale id.Sale
}

// In returns the most relevant entry of a user in a sale: an open one, else the newest;
// nil if there is none.
func (s *Service) In(ctx context.Context, user id.User, sale id.Sale) (*Entry, error) {
	entries, err := s.Entries(ctx, user, sale)
	if len(entries) == 0 {
		return nil, err
	}
	return entries[0], err
}

// Entries returns the open entries of a user in a sale, and the newest one; the most
// relevant is the first. Concurrent calls share a query.
func (s *Service) Entries(ctx context.Context, user id.User, sale id.Sale) ([]*Entry, error) {
	return s.owns.Do(ctx, buyer{user, sale})
}

func (s *Service) inAll(ctx context.Context, asked []buyer) []batch.Result[[]*Entry] {
	results := make([]batch.Result[[]*Entry], len(asked))
	for sale, those := range byKey(asked, func(p buyer) id.Sale { return p.sale }) {
		users := collect.Map(those, func(i int) id.User { return asked[i].user })
		rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.SaleID(sale), waitlistentry.UserIDIn(users...),
				waitlistentry.Or(waitlistentry.StatusIn(openStatuses...), newest(sale, users))).
			Order(ent.Desc(waitlistentry.FieldID)).All(ctx)
		if err != nil {
			err = fmt.Errorf("read waitlist entries: %w", err)
		}
		own := make(map[id.User][]*Entry, len(rows))
		for _, row := range rows {
			own[row.UserID] = append(own[row.UserID], fromRow(row))
		}
		for _, entries := range own {
			slices.SortStableFunc(entries, func(a, b *Entry) int { return weight(b) - weight(a) })
		}
		for _, i := range those {
			results[i] = batch.Result[[]*Entry]{Value: own[asked[i].user], Err: err}
		}
	}
	return results
}

// weight returns the relevance of an entry; higher is more relevant.
func weight(e *Entry) int {
	switch e.Status {
	case Offered:
		return 2
	case Entered, Waiting:
		return 1
	case Redeemed, Expired, Left:
	}
	return 0
}

// newest selects the newest entry of each user in a sale.
func newest(sale id.Sale, users []id.User) predicate.WaitlistEntry {
	return func(s *sql.Selector) {
		build := sql.Dialect(s.Dialect())
		t := build.Table(waitlistentry.Table)
		anyUser := collect.Map(users, func(u id.User) any { return u })
		own := build.Select(t.C(waitlistentry.FieldID)).
			AppendSelectExprAs(sql.RowNumber().PartitionBy(t.C(waitlistentry.FieldUserID)).
				OrderBy(sql.Desc(t.C(waitlistentry.FieldID))), "nth").
			From(t).Where(sql.And(sql.EQ(t.C(waitlistentry.FieldSaleID), sale),
			sql.In(t.C(waitlistentry.FieldUserID), anyUser...))).As("own")
		s.Where(sql.In(s.C(waitlistentry.FieldID), build.Select(own.C(waitlistentry.FieldID)).From(own).
			Where(sql.EQ(own.C("nth"), 1))))
	}
}

// openStatuses are those of open entries, which the indexes of ent/schema name.
var openStatuses = []waitlistentry.Status{
	waitlistentry.StatusENTERED, waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED,
}

func one(row *ent.WaitlistEntry, err error) (*Entry, error) {
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read waitlist entry: %w", err)
	}
	return fromRow(row), nil
}

// rank is an entry in the waitlist of an item.
type rank struct {
	item  id.Item
	entry id.Waitlist
	line  int64 // of a draw
}

// Ahead returns the number of buyers who wait before an entry. Concurrent calls share a
// query: counting reads the waitlist up to the entry. In a draw it is the number of places, of which
// some may have been left.
func (s *Service) Ahead(ctx context.Context, e *Entry) (int, error) {
	return s.ranks.Do(ctx, rank{e.Item, e.ID, e.Line})
}

func (s *Service) aheadAll(ctx context.Context, asked []rank) []batch.Result[int] {
	results := make([]batch.Result[int], len(asked))
	for item, those := range byKey(asked, func(r rank) id.Item { return r.item }) {
		if asked[those[0]].line > 0 {
			first, err := s.firstWaiting(ctx, item)
			for _, i := range those {
				results[i] = batch.Result[int]{Value: int(max(0, asked[i].line-first)), Err: err}
			}
			continue
		}
		last := asked[those[0]].entry
		for _, i := range those {
			if byPosition(asked[i].entry, last) > 0 {
				last = asked[i].entry
			}
		}
		ids, err := s.cfg.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.ItemID(item), waitlistentry.StatusEQ(waitlistentry.StatusWAITING), waitlistentry.IDLT(last)).
			Order(ent.Asc(waitlistentry.FieldID)).IDs(ctx)
		if err != nil {
			err = fmt.Errorf("count entries ahead: %w", err)
		}
		for _, i := range those {
			ahead, _ := slices.BinarySearchFunc(ids, asked[i].entry, byPosition)
			results[i] = batch.Result[int]{Value: ahead, Err: err}
		}
	}
	return results
}

// firstWaiting returns the lowest number of the waiting entries of a draw.
func (s *Service) firstWaiting(ctx context.Context, item id.Item) (int64, error) {
	row, err := s.cfg.DB.Ent.WaitlistEntry.Query().
		Where(waitlistentry.ItemID(item), waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).
		Order(ent.Asc(waitlistentry.FieldLine)).First(ctx)
	if ent.IsNotFound(err) {
		return math.MaxInt64, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read first waiting entry: %w", err)
	}
	return row.Line, nil
}

// byPosition orders entries by their position in the waitlist.
func byPosition(a, b id.Waitlist) int { return bytes.Compare(a[:], b[:]) }

// Holds returns the entries of an item for which the gate has, or may have,
// reservations: offers, and entries whose units are not released yet. Code that
// compares or rebuilds the gate counts them as reservations. It also returns the
// entries with the given ids, in any status, so that the caller can recognise
// reservations of entries.
func Holds(ctx context.Context, client *ent.WaitlistEntryClient, item id.Item, names ...id.Waitlist) ([]*Entry, error) {
	var entries []*Entry
	read := func(where predicate.WaitlistEntry) error {
		rows, err := client.Query().Where(waitlistentry.ItemID(item), where).All(ctx)
		for _, row := range rows {
			entries = append(entries, fromRow(row))
		}
		return err
	}
	err := read(waitlistentry.Or(waitlistentry.StatusEQ(waitlistentry.StatusOFFERED), waitlistentry.ReturnDue(true)))
	for chunk := range slices.Chunk(names, namesAtOnce) {
		if err == nil {
			err = read(waitlistentry.IDIn(chunk...))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read offers of item %s: %w", item, err)
	}
	return entries, nil
}

// HasWaiting reports whether buyers wait for an item.
func HasWaiting(ctx context.Context, client *ent.WaitlistEntryClient, item id.Item) (bool, error) {
	waiting, err := client.Query().Where(waitlistentry.ItemID(item), waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).
		Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("read waitlist of item %s: %w", item, err)
	}
	return waiting, nil
}

// namesAtOnce bounds the ids in one query.
const namesAtOnce = 1000

// purgeAfter is how long an entry is kept after the buyer left or the offer expired.
const purgeAfter = 7 * 24 * time.Hour

// Purge deletes entries that ended without an order a week ago, but for those of a draw that had
// their turn, which its record names. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	return s.cfg.DB.Purge(ctx, "purged", waitlistentry.Table,
		waitlistentry.StatusIn(waitlistentry.StatusLEFT, waitlistentry.StatusEXPIRED), waitlistentry.ReturnDue(false),
		waitlistentry.CardIn(waitlistentry.CardNONE, waitlistentry.CardDONE),
		waitlistentry.UpdatedAtLT(s.now().Add(-purgeAfter)),
		waitlistentry.Or(waitlistentry.Line(0),
			waitlistentry.And(waitlistentry.StatusEQ(waitlistentry.StatusEXPIRED), waitlistentry.OfferExpiresAtIsNil())))
}
