package waitlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/saleitem"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// every is the interval between steps, and so about the time until a released unit
	// is offered.
	every = 250 * time.Millisecond
	// idle is the longest interval while no item has a waitlist; it delays the first offer
	// of a new one.
	idle = time.Second
	// stepTimeout is the timeout of one step.
	stepTimeout = 10 * time.Second
	// maxItems, maxPlaces and maxOffers bound one step: items with a waitlist, and per
	// item the waiting entries and the open offers.
	maxItems  = 1000
	maxPlaces = 200
	maxOffers = 1000
	// maxRounds bounds the rounds of offers of a draw in one step: 2,000 offers.
	maxRounds = 10
	// restAtOnce bounds the entries that one transaction ends.
	restAtOnce = 2000
)

// Loop returns the loop that makes and expires offers and releases units.
func (s *Service) Loop() periodic.Loop {
	return periodic.Loop{Name: "waitlist", Every: every, Idle: idle, Busy: s.waiting.Load, Timeout: stepTimeout,
		HasWork: s.cfg.DB.AnyRows(
			firstEntry(waitlistentry.FieldItemID, waitlistentry.StatusEQ(waitlistentry.StatusWAITING)),
			firstEntry(waitlistentry.FieldOfferExpiresAt, waitlistentry.StatusEQ(waitlistentry.StatusOFFERED)),
			firstEntry(waitlistentry.FieldID, waitlistentry.ReturnDue(true)),
		), Step: s.Step, Log: s.cfg.Log}
}

func firstEntry(column string, match predicate.WaitlistEntry) func() *sql.Selector {
	return func() *sql.Selector { return postgres.First(postgres.Rows(waitlistentry.Table, match), column) }
}

// item is an item with a waitlist.
type item struct {
	sale      id.Sale
	id        id.Item
	saleState      // of its sale
	undrawn   bool // its entries have no numbers, or not all
}

// Step processes every item with a waitlist: it expires offers, releases the units of
// ended entries, and offers available units to the next buyers. The entries of a sale
// that is over end.
func (s *Service) Step(ctx context.Context) (map[string]int, error) {
	items, err := s.itemsWithWaitlist(ctx)
	s.waiting.Store(len(items) > 0)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	counts := map[string]int{}
	var failed []error
	s.gates.keep(items)
	for _, it := range items {
		it.resumed = latest(it.resumed, s.gates.backSince(it.id))
		for _, step := range []func(context.Context, item, map[string]int) error{s.renew, s.expire, s.giveBack, s.offer} {
			if err := step(ctx, it, counts); err != nil {
				failed = append(failed, fmt.Errorf("waitlist of item %s: %w", it.id, err))
				break
			}
		}
	}
	for what, n := range counts {
		s.metrics.turned(what, n)
	}
	return counts, errors.Join(failed...)
}

// waitingItems finds the items of waiting entries by one probe of the index for each item: a draw
// may have a million entries, which a step must not count.
const waitingItems = `WITH RECURSIVE items (item) AS (
	SELECT (SELECT item_id FROM waitlist_entries WHERE status = 'WAITING' ORDER BY item_id LIMIT 1)
	UNION ALL
	SELECT (SELECT item_id FROM waitlist_entries WHERE status = 'WAITING' AND item_id > items.item ORDER BY item_id LIMIT 1)
	FROM items WHERE items.item IS NOT NULL
) SELECT item FROM items WHERE item IS NOT NULL LIMIT $1`

var offeredOrDue = waitlistentry.Or(waitlistentry.StatusEQ(waitlistentry.StatusOFFERED), waitlistentry.ReturnDue(true))

// itemsWithWaitlist returns the items with a waitlist, and sets the metrics of entries.
func (s *Service) itemsWithWaitlist(ctx context.Context) ([]item, error) {
	known := map[id.Item]bool{}
	found, err := s.cfg.DB.Ent.QueryContext(ctx, waitingItems, maxItems)
	if err != nil {
		return nil, fmt.Errorf("find items with waiting entries: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var itemID id.Item
		if err := found.Scan(&itemID); err != nil {
			return nil, fmt.Errorf("find items with waiting entries: %w", err)
		}
		known[itemID] = true
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("find items with waiting entries: %w", err)
	}
	var rows []struct {
		ItemID id.Item              `json:"item_id"`
		Status waitlistentry.Status `json:"status"`
		Count  int                  `json:"count"`
	}
	err = s.cfg.DB.Ent.WaitlistEntry.Query().
		Where(offeredOrDue).
		Limit(maxItems).GroupBy(waitlistentry.FieldItemID, waitlistentry.FieldStatus).
		Aggregate(ent.Count()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("find items with waitlist entries: %w", err)
	}
	offered := 0
	for _, row := range rows {
		known[row.ItemID] = true
		if row.Status == waitlistentry.StatusOFFERED {
			offered += row.Count
		}
	}
	if err := s.countWaiting(ctx, len(known) > 0, offered); err != nil || len(known) == 0 {
		return nil, err
	}
	return s.withStates(ctx, slices.Collect(maps.Keys(known)))
}

// countShare is the part of the time that counting the waiting entries for the metrics may take:
// one in countShare.
const countShare = 20

// countWaiting sets the metrics of entries. Without any there is nothing to count.
func (s *Service) countWaiting(ctx context.Context, entries bool, offered int) error {
	if entries && s.now().Before(s.countAgain) {
		return nil
	}
	waiting := 0
	if entries {
		var err error
		began := time.Now()
		waiting, err = s.cfg.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).Count(ctx)
		if err != nil {
			return fmt.Errorf("count waiting entries: %w", err)
		}
		s.countAgain = s.now().Add(countShare * time.Since(began))
	}
	s.metrics.setEntries(waiting, offered)
	return nil
}

// withStates returns items with the states of their sales and draws, in the order of each sale.
func (s *Service) withStates(ctx context.Context, ids []id.Item) ([]item, error) {
	rows, err := s.cfg.DB.Ent.SaleItem.Query().Where(saleitem.IDIn(ids...)).
		Order(ent.Asc(saleitem.FieldSaleID), ent.Asc(saleitem.FieldPosition)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read items with a waitlist: %w", err)
	}
	items, sales := make([]item, len(rows)), make([]id.Sale, len(rows))
	for i, row := range rows {
		items[i], sales[i] = item{sale: row.SaleID, id: row.ID}, row.SaleID
	}
	states, err := s.saleStates(ctx, sales)
	if err != nil {
		return nil, err
	}
	var drawn []id.Item
	for i := range items {
		items[i].saleState = states[items[i].sale]
		if items[i].draw {
			drawn = append(drawn, items[i].id)
		}
	}
	draws, err := s.Drawings(ctx, drawn...)
	for i := range items {
		d := draws[items[i].id]
		items[i].undrawn = items[i].draw && (d == nil || d.State != Drawn)
	}
	return items, err
}

// expire ends offers that were not redeemed in time, and all entries if the sale is
// over. While the sale is paused, or its gate cannot be reached, no offer can be
// redeemed, and none expires; nor does one while the clocks disagree.
func (s *Service) expire(ctx context.Context, it item, counts map[string]int) error {
	if it.held || !it.over && !s.gates.serves(it.id) {
		return nil
	}
	ending := waitlistentry.And(waitlistentry.StatusEQ(waitlistentry.StatusOFFERED),
		waitlistentry.OfferExpiresAtLT(s.now()))
	if it.over {
		ending = waitlistentry.StatusIn(openStatuses...)
	}
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(it.id), ending).
		Order(ent.Asc(waitlistentry.FieldLine), ent.Asc(waitlistentry.FieldID)).Limit(maxPlaces).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := s.cfg.Shared.Agree(ctx); err != nil {
		return fmt.Errorf("%d or more offers are to expire: %w", len(rows), err)
	}
	for _, row := range rows {
		moved, err := s.change(ctx, fromRow(row), Expired, func(u *ent.WaitlistEntryUpdate) { u.SetReturnDue(true) })
		if err != nil {
			return err
		}
		if moved != nil {
			counts["lapsed"]++
		}
	}
	if it.over && it.draw && len(rows) == maxPlaces {
		return s.expireRest(ctx, it, rows[len(rows)-1].Line, counts)
	}
	return nil
}

// expireRest ends the entries of a draw whose sale is over and whose turn had not come: no unit is
// reserved for them, and the end of the sale is pushed to their users anyway.
func (s *Service) expireRest(ctx context.Context, it item, after int64, counts map[string]int) error {
	return s.endAll(ctx, counts, waitlistentry.ItemID(it.id), waitlistentry.LineGT(after+maxPlaces),
		waitlistentry.StatusEQ(waitlistentry.StatusWAITING))
}

// endAll ends the entries that match, to which no unit is reserved.
func (s *Service) endAll(ctx context.Context, counts map[string]int, match ...predicate.WaitlistEntry) error {
	for {
		n := 0
		err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			n = 0
			ids, err := tx.WaitlistEntry.Query().Where(match...).Limit(restAtOnce).IDs(ctx)
			if err != nil || len(ids) == 0 {
				return err
			}
			n, err = transition(tx, Expired, s.now(), match...).Where(waitlistentry.IDIn(ids...)).Save(ctx)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
		counts["lapsed"] += n
	}
}

// giveBack releases the units of ended entries, and then marks the rows. An entry that
// was redeemed at the last moment has no reservation under its own id. While the gate
// is being built, entries wait. A row that was marked again in the meantime stays marked.
func (s *Service) giveBack(ctx context.Context, it item, counts map[string]int) error {
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().
		Where(waitlistentry.ItemID(it.id), waitlistentry.ReturnDue(true)).Limit(maxPlaces).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	done := make([]predicate.WaitlistEntry, 0, len(rows))
	for _, row := range rows {
		ref := fromRow(row).ref()
		ref.Expired = ref.Expired && !it.over
		r, err := s.cfg.Gate.Release(ctx, ref)
		if err != nil {
			return err
		}
		if r.Building {
			break
		}
		if r.Done {
			counts["returned"]++
		}
		done = append(done, waitlistentry.And(waitlistentry.ID(row.ID), waitlistentry.Version(row.Version)))
	}
	if len(done) == 0 {
		return nil
	}
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.WaitlistEntry.Update().Where(waitlistentry.Or(done...)).SetReturnDue(false).Exec(ctx)
	})
}

// offer offers the available units of an item to the waiting buyers. A draw may have thousands.
func (s *Service) offer(ctx context.Context, it item, counts map[string]int) error {
	for range maxRounds {
		before := counts["offered"]
		if err := s.offerRound(ctx, it, counts); err != nil || !it.draw || counts["offered"]-before < maxPlaces/2 {
			return err
		}
	}
	return nil
}

// offerRound records at the gate whether buyers wait, and offers available units to the first of
// them, first come, first served. An entry for more units than are available is skipped, so
// that no unit stays unoffered.
func (s *Service) offerRound(ctx context.Context, it item, counts map[string]int) error {
	if it.over || it.undrawn {
		return nil
	}
	open := func(status waitlistentry.Status, limit int) ([]*ent.WaitlistEntry, error) {
		return s.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(it.id), waitlistentry.StatusEQ(status)).
			Order(ent.Asc(waitlistentry.FieldLine), ent.Asc(waitlistentry.FieldID)).Limit(limit).All(ctx)
	}
	var offered []*ent.WaitlistEntry
	var err error
	if !it.draw || s.gates.recheck(it.id, s.now()) {
		offered, err = open(waitlistentry.StatusOFFERED, maxOffers)
	}
	if err != nil {
		return err
	}
	waiting, err := open(waitlistentry.StatusWAITING, maxPlaces)
	if err != nil {
		return err
	}
	wait := reservation.NoBuyerWaits
	if len(waiting) > 0 {
		wait = reservation.BuyersWait
	}
	status, err := s.cfg.Gate.Status(ctx, it.sale, it.id, wait)
	s.gates.note(it.id, err == nil && status.Loaded, s.now())
	if err != nil || !status.Loaded || !status.Open {
		return err
	}
	if status.Stock > 0 { // which a share may keep for buyers further behind
		members, err := s.cfg.DB.Ent.WaitlistEntry.Query().
			Where(waitlistentry.ItemID(it.id), waitlistentry.AccessKeysNotNil(),
				waitlistentry.StatusEQ(waitlistentry.StatusWAITING), waitlistentry.IDNotIn(ids(waiting)...)).
			Order(ent.Asc(waitlistentry.FieldLine), ent.Asc(waitlistentry.FieldID)).Limit(maxPlaces).All(ctx)
		if err != nil {
			return err
		}
		waiting = append(waiting, members...)
	}
	users := collect.Map(waiting, func(row *ent.WaitlistEntry) id.User { return row.UserID })
	held, err := s.cfg.Gate.ReservationTasks(ctx, it.sale, it.id, users)
	if err != nil {
		return err
	}
	left := supply{stock: status.Stock, tooMany: map[person.Key]int{}}
	var reserved []*Entry
	for _, row := range append(offered, waiting...) {
		e := fromRow(row)
		begun := held[e.User] == id.Task(e.ID) // a process reserved its units and crashed
		if e.Status == Waiting && !left.allows(e) && !begun {
			continue
		}
		var offer bool
		if offer, err = s.reserveFor(ctx, e, &left, counts); err != nil {
			break
		}
		if offer {
			reserved = append(reserved, e)
		}
	}
	return cmp.Or(s.makeOffers(ctx, reserved, it, counts), err)
}

// makeOffers records offers of units that are reserved: all in one transaction, or, if one of the
// entries has changed meanwhile, each in its own.
func (s *Service) makeOffers(ctx context.Context, entries []*Entry, it item, counts map[string]int) error {
	if len(entries) == 0 {
		return nil
	}
	until := s.now().Add(it.offerFor)
	err := s.makeTogether(ctx, entries, until, counts)
	if !errors.Is(err, errEntryChanged) {
		return err
	}
	for _, e := range entries {
		err := s.makeTogether(ctx, []*Entry{e}, until, counts)
		if errors.Is(err, errEntryChanged) {
			err = s.returnIfEnded(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errEntryChanged = errors.New("an entry has changed")

// makeTogether records and publishes the offers of entries, or returns errEntryChanged.
func (s *Service) makeTogether(ctx context.Context, entries []*Entry, until time.Time, counts map[string]int) error {
	now := s.now()
	unchanged := make([]predicate.WaitlistEntry, len(entries))
	offers := make([]notice.Offer, len(entries))
	ids := make([]id.Waitlist, len(entries))
	for i, e := range entries {
		unchanged[i] = e.unchanged()
		offers[i] = notice.Offer{Entry: e.ID, User: e.User, At: now, Until: until}
		ids[i] = e.ID
	}
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := transition(tx, Offered, now, waitlistentry.Or(unchanged...)).SetOfferExpiresAt(until).Save(ctx)
		if err == nil && n < len(entries) {
			err = errEntryChanged
		}
		if err != nil {
			return err
		}
		return s.cfg.Notices.Offered(ctx, tx, offers...)
	})
	if err != nil {
		return fmt.Errorf("record %d offers: %w", len(entries), err)
	}
	counts["offered"] += len(entries)
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read offers: %w", err)
	}
	for i, row := range rows {
		entries[i] = fromRow(row)
	}
	s.publish(ctx, entries[:len(rows)]...)
	return nil
}

// supply is what is left for the entries of a round.
type supply struct {
	stock   int
	tooMany map[person.Key]int // by share: units that its buyers cannot get, because others keep them
}

func (l *supply) allows(e *Entry) bool {
	least, few := l.tooMany[e.Persons.Share]
	return e.Quantity <= l.stock && (!few || e.Quantity < least)
}

func ids(rows []*ent.WaitlistEntry) []id.Waitlist {
	return collect.Map(rows, func(row *ent.WaitlistEntry) id.Waitlist { return row.ID })
}

// reserveFor reserves units for an entry and reports whether they can be offered. For an entry with
// an offer it ensures that the units are reserved: the gate may have been rebuilt. It updates what
// is left.
func (s *Service) reserveFor(ctx context.Context, e *Entry, left *supply, counts map[string]int) (bool, error) {
	r, err := s.cfg.Gate.Reacquire(ctx, reservation.Reacquire{Ref: e.ref(), Quantity: e.Quantity, Persons: e.Persons})
	if err != nil {
		return false, err
	}
	to, set, what := Left, overLimit, "left"
	switch r.Code {
	case reservation.Reacquired, reservation.ReacquiredBefore:
		left.stock = r.Remaining
		if e.Status == Offered && r.Code == reservation.Reacquired {
			return false, s.returnIfEnded(ctx, e)
		}
		return e.Status != Offered, nil
	case reservation.ReacquireTooFew:
		if e.Status == Waiting {
			left.stock, left.tooMany[e.Persons.Share] = r.Remaining, e.Quantity
			return false, nil
		}
		to, set, what = Waiting, func(u *ent.WaitlistEntryUpdate) { u.ClearOfferExpiresAt() }, "withdrawn"
	case reservation.ReacquireOther: // the user has another reservation, or is redeeming now
		if former, err := s.holdsFormer(ctx, e); err != nil || former || e.Status == Offered {
			return false, err
		}
	case reservation.ReacquireOverLimit: // the next buyer gets the units
		if e.Status == Offered {
			return false, nil
		}
	case reservation.ReacquireNotLoaded, reservation.ReacquireNotYet:
		return false, nil
	}
	moved, err := s.change(ctx, e, to, set)
	if err == nil && moved != nil {
		counts[what]++
	}
	return false, err
}

// overLimit ends an entry whose user has as many units as one may have.
func overLimit(u *ent.WaitlistEntryUpdate) {
	u.SetSkipped(string(draw.ReasonLimit))
}

// holdsFormer reports whether the reservation of the user is that of a former entry, or
// has gone meanwhile: the entry gets its offer once those units are released.
func (s *Service) holdsFormer(ctx context.Context, e *Entry) (bool, error) {
	held, err := s.cfg.Gate.ReservationTasks(ctx, e.Sale, e.Item, []id.User{e.User})
	if err != nil {
		return false, err
	}
	task, reserved := held[e.User]
	if !reserved {
		return true, nil
	}
	former, err := s.Entry(ctx, id.Waitlist(task))
	return former != nil, err
}

// returnIfEnded marks an entry for release if it had ended before units were reserved
// for it. The version grows, so that a release that saw the entry before clears no mark.
func (s *Service) returnIfEnded(ctx context.Context, e *Entry) error {
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.WaitlistEntry.Update().
			Where(waitlistentry.ID(e.ID), waitlistentry.StatusNotIn(openStatuses...)).
			AddVersion(1).SetReturnDue(true).Exec(ctx)
	})
}
