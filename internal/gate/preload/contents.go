package preload

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/access"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

const (
	// orderPage bounds the live orders in one statement and in memory. They lie anywhere in
	// the table: a page that is not in memory is as many reads of the disk.
	orderPage = 2000
	// pageTimeout is the timeout of a statement of a build. It is shorter than buildTimeout:
	// otherwise another process would take over a build that reads.
	pageTimeout = 8 * time.Second
)

// build reads every item of a sale and writes its reservations, and then opens all gates:
// a gate of a sale with a limit needs the units per buyer of all items. It returns false
// if another process has begun a newer build.
func (p *Preloader) build(ctx context.Context, row *ent.Sale, items []id.Item, waiting []order.Request) (bool, error) {
	gates := make([]reservation.Contents, len(items))
	for i, item := range items {
		gate, written, err := p.fill(ctx, row, item, waiting)
		if err != nil || !written {
			return false, err
		}
		gates[i] = gate
	}
	if err := p.restoreExpiries(ctx, row.ID); err != nil {
		return false, err
	}
	for _, gate := range gates {
		if opened, err := p.cfg.Gate.Open(ctx, gate); err != nil || !opened {
			return false, err
		}
	}
	return true, nil
}

// restoreExpiries restores what expired in a sale. Path tokens that expired unused, and offers of
// the waitlist that were ignored, are counted in Redis alone.
func (p *Preloader) restoreExpiries(ctx context.Context, saleID id.Sale) error {
	now := p.cfg.Clock.Now()
	found, err := order.ExpiriesOf(ctx, p.cfg.DB, saleID, reservation.ExpiriesSince(now))
	if err != nil {
		return fmt.Errorf("expiries in sale %s: %w", saleID, err)
	}
	all := make([]reservation.Expiries, 0, len(found))
	for subject, e := range found {
		all = append(all, reservation.Expiries{Subject: subject, Count: e.Count, Last: e.Last})
	}
	return p.cfg.Gate.RestoreExpiries(ctx, saleID, all, now)
}

// fill reads an item and its sale in one snapshot and writes the reservations of its
// gate. Orders of former gates that were written before are in the snapshot; from then on
// the writer asks for a reservation in the new gate. It returns false if another process
// has begun a newer build. The reservations of live orders are
// written page by page inside the snapshot: the memory needed does not depend on their
// number. Each page must be written within idle_in_transaction_session_timeout.
func (p *Preloader) fill(ctx context.Context, of *ent.Sale, itemID id.Item,
	waiting []order.Request) (gate reservation.Contents, written bool, err error) {
	if err := p.raiseEpoch(ctx, itemID, of.Epoch); err != nil {
		return gate, false, err
	}
	err = p.cfg.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := p.cfg.DB.LimitStatements(ctx, tx, pageTimeout); err != nil {
			return err
		}
		row, err := tx.Sale.Get(ctx, of.ID) // it may have been paused or ended since the epoch was taken
		if err != nil {
			return err
		}
		row.Epoch = of.Epoch
		item, err := tx.SaleItem.Get(ctx, itemID)
		if err != nil {
			return err
		}
		unwritten, err := reserving(ctx, tx, itemID, waiting)
		if err != nil {
			return err
		}
		offers, err := waitlist.Holds(ctx, tx.WaitlistEntry, itemID)
		if err != nil {
			return err
		}
		if gate, err = contents(ctx, tx, row, item); err != nil {
			return err
		}
		offered := usersWithOffer(offers)
		if written, err = p.addOrders(ctx, tx, &gate, offered); err != nil || !written {
			return err
		}
		pending := append(unwrittenReservations(&gate, unwritten, offered), offerReservations(&gate, offers, offered)...)
		written, err = p.cfg.Gate.AddReservations(ctx, &gate, pending)
		return err
	})
	if err != nil {
		return gate, false, fmt.Errorf("read item %s: %w", itemID, err)
	}
	if !written {
		return gate, false, nil
	}
	if gate.Stock < 0 { // stays below zero: otherwise released units would be added to the stock
		p.cfg.Log.ErrorContext(ctx, "more units are reserved than there are",
			slog.String("item", itemID.Public()), slog.Int("missing", -gate.Stock))
	}
	return gate, true, p.raiseRevision(ctx, itemID, gate.Revision) // before clients see it
}

func contents(ctx context.Context, tx *ent.Tx, row *ent.Sale, item *ent.SaleItem) (reservation.Contents, error) {
	acts, err := recentActs(ctx, tx, item.ID)
	if err != nil {
		return reservation.Contents{}, err
	}
	buyersWait, err := waitlist.HasWaiting(ctx, tx.WaitlistEntry, item.ID)
	if err != nil {
		return reservation.Contents{}, err
	}
	rules, shares := access.Parse(row.Access), []reservation.Share(nil)
	for i, r := range rules {
		if r.Keep > 0 {
			shares = append(shares, reservation.Share{Key: person.ShareOf(i), Units: r.Keep, Until: r.KeptUntil(row.StartsAt)})
		}
	}
	return reservation.Contents{
		Sale: row.ID, Item: item.ID, State: gateState(row), SaleRevision: row.Revision, Epoch: row.Epoch, Acts: acts,
		Opens: row.StartsAt, Closes: row.EndsAt, Limit: sale.ItemLimitOf(row, item), SaleLimit: sale.LimitOf(row),
		Total: item.Total, Stock: item.Available, Shares: shares, BuyersWait: buyersWait,
		Revision: max(revisionsPerEpoch*row.Epoch, revisionAbove(item)),
	}, nil
}

// usersWithOffer returns the users with an offer. Their values become true once another
// reservation of theirs is found.
func usersWithOffer(offers []*waitlist.Entry) map[id.User]bool {
	users := make(map[id.User]bool, len(offers))
	for _, e := range offers {
		users[e.User] = false
	}
	return users
}

// addOrders writes the reservations of the live orders of an item into its gate. It
// returns false if a newer build has begun. The order of the pages is that of the index
// of live orders.
func (p *Preloader) addOrders(ctx context.Context, tx *ent.Tx, gate *reservation.Contents,
	offered map[id.User]bool) (bool, error) {
	for after := (id.User{}); ; {
		page, err := tx.Order.Query().Where(
			entorder.ItemID(gate.Item), entorder.UserIDGT(after), isLive,
		).Order(ent.Asc(entorder.FieldUserID)).Limit(orderPage).
			Select(entorder.FieldID, entorder.FieldUserID, entorder.FieldStatus, entorder.FieldQuantity,
				entorder.FieldRefundedQuantity, entorder.FieldClaimID,
				entorder.FieldReservedAt, entorder.FieldPersonKeys).All(ctx)
		if err != nil {
			return false, fmt.Errorf("live orders: %w", err)
		}
		list := make([]reservation.Reservation, len(page))
		for i, row := range page {
			own := order.FromRow(row).Reservation() // a reacquired order has a reservation under a new task
			list[i] = reservation.Reservation{User: own.User, Task: own.Name, Persons: own.Persons, Quantity: own.Quantity,
				At: row.ReservedAt}
			if _, has := offered[own.User]; has {
				offered[own.User] = true
			}
		}
		if written, err := p.cfg.Gate.AddReservations(ctx, gate, list); err != nil || !written {
			return false, err
		}
		if len(page) < orderPage {
			return true, nil
		}
		after = page[len(page)-1].UserID
	}
}

// unwrittenReservations returns the reservations of messages that no worker has written
// yet, and takes their units off the stock.
func unwrittenReservations(gate *reservation.Contents, unwritten []order.Request,
	offered map[id.User]bool) []reservation.Reservation {
	list := make([]reservation.Reservation, len(unwritten))
	for i, m := range unwritten {
		gate.Stock -= m.Quantity
		list[i] = reservation.Reservation{
			User: m.User, Task: m.Task, Persons: m.Persons, Quantity: m.Quantity,
			At: time.UnixMilli(m.SubmittedAtMs), IdempotencyKey: m.IdempotencyKey,
		}
		if _, has := offered[m.User]; has {
			offered[m.User] = true
		}
	}
	return list
}

// offerReservations returns the reservations of the waitlist's offers, and takes their
// units off the stock. A user with another reservation has just redeemed the offer.
func offerReservations(gate *reservation.Contents, offers []*waitlist.Entry,
	offered map[id.User]bool) (list []reservation.Reservation) {
	for _, e := range offers {
		if e.Status != waitlist.Offered || offered[e.User] || e.Quantity > gate.Stock {
			continue
		}
		gate.Stock -= e.Quantity
		list = append(list, reservation.Reservation{User: e.User, Task: id.Task(e.ID), Persons: e.Persons,
			Quantity: e.Quantity, At: e.UpdatedAt})
	}
	return list
}

// revisionAbove returns a revision above every revision of the item that clients may
// have seen. Since its revision was last recorded, a lost gate has taken at most its
// total, plus the units released within these seconds.
func revisionAbove(item *ent.SaleItem) int64 {
	if item.GateRevision == 0 {
		return 0
	}
	return max(item.Revision, item.GateRevision) + int64(item.Total) + revisionsPerEpoch
}

// maxActs bounds the adjustments stored in a gate: incomplete adjustments are among the
// newest.
const maxActs = 500

// recentActs returns the newest adjustments that the item's stock includes.
func recentActs(ctx context.Context, tx *ent.Tx, itemID id.Item) ([]uuid.UUID, error) {
	rows, err := tx.StockMovement.Query().
		Where(stockmovement.ItemID(itemID), stockmovement.KindEQ(stockmovement.KindADJUST)).
		Order(ent.Desc(stockmovement.FieldID)).Limit(maxActs).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("adjustments: %w", err)
	}
	return collect.Map(rows, func(row *ent.StockMovement) uuid.UUID { return row.OrderID }), nil
}

// unwritten returns the messages of an item whose task has not ended in Postgres.
func unwritten(ctx context.Context, tx *ent.Tx, itemID id.Item, waiting []order.Request) ([]order.Request, error) {
	var tasks []id.Task
	var mine []order.Request
	for _, m := range waiting {
		if m.Item == itemID {
			mine, tasks = append(mine, m), append(tasks, m.Task)
		}
	}
	ended := make(map[id.Order]bool, len(tasks))
	for start := 0; start < len(tasks); start += idChunk {
		chunk := tasks[start:min(start+idChunk, len(tasks))]
		orders, err := tx.Order.Query().Where(entorder.IDIn(id.As[id.Order](chunk)...)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up orders: %w", err)
		}
		failures, err := tx.OrderFailure.Query().Where(orderfailure.IDIn(chunk...)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up failures: %w", err)
		}
		for _, u := range append(orders, id.As[id.Order](failures)...) {
			ended[u] = true
		}
	}
	kept := mine[:0]
	seen := make(map[id.Task]bool, len(mine))
	for _, m := range mine {
		if !ended[id.Order(m.Task)] && !seen[m.Task] {
			seen[m.Task] = true
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// reserving returns the unwritten messages of an item that may become orders: of each buyer without a
// live order the oldest, as the writer chooses.
func reserving(ctx context.Context, tx *ent.Tx, itemID id.Item, waiting []order.Request) ([]order.Request, error) {
	messages, err := unwritten(ctx, tx, itemID, waiting)
	if err != nil {
		return nil, err
	}
	served, err := withLiveOrder(ctx, tx, itemID, messages)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(messages, func(a, b order.Request) int {
		return cmp.Or(cmp.Compare(a.SubmittedAtMs, b.SubmittedAtMs), bytes.Compare(a.Task[:], b.Task[:]))
	})
	return slices.DeleteFunc(messages, func(m order.Request) bool {
		again := served[m.User]
		served[m.User] = true
		return again
	}), nil
}

// withLiveOrder returns the buyers of messages that have a live order of the item.
func withLiveOrder(ctx context.Context, tx *ent.Tx, itemID id.Item,
	messages []order.Request) (map[id.User]bool, error) {
	live := map[id.User]bool{}
	for chunk := range slices.Chunk(messages, idChunk) {
		users := collect.Map(chunk, func(m order.Request) id.User { return m.User })
		rows, err := tx.Order.Query().Where(entorder.ItemID(itemID), entorder.UserIDIn(users...), isLive).
			Select(entorder.FieldUserID).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up live orders: %w", err)
		}
		for _, row := range rows {
			live[row.UserID] = true
		}
	}
	return live, nil
}

// isLive selects orders that have a reservation.
var isLive = entorder.StatusIn(entorder.StatusPENDING_PAYMENT, entorder.StatusPAID, entorder.StatusREFUNDING)

// idChunk bounds the ids in one query.
const idChunk = 1000
