package acceptance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"seckill/ent"
	"seckill/ent/acceptanceentry"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/ent/refund"
	"seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/order"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// logEvery is the pause between two passes: a checkpoint is at most that old.
	logEvery = time.Second
	// logTimeout is the timeout of a pass; one with most entries takes a second.
	logTimeout = 30 * time.Second
	// recentOrders and recentMoves are how far back a pass looks. Rows have the time at which
	// their transaction began, and are visible after its commit. An order that becomes visible
	// later is found at the age of lateOrders, or when its units are returned.
	recentOrders = time.Second
	recentMoves  = time.Minute
	// lateOrders is the age at which each order is read again: a transaction ends within
	// order.BatchTimeout, and clocks differ by clock.MaxDifference.
	lateOrders = order.BatchTimeout + clock.MaxDifference
	// open is how long after its end a sale is looked at in each pass: the waitlist makes
	// orders then.
	open = 24 * time.Hour
	// wholeEvery is the pause after which all orders are looked at of sales that ended at most
	// loggedFor ago. Sales that had ended before have no log.
	wholeEvery = time.Hour
	loggedFor  = 30 * 24 * time.Hour
	// maxFound bounds the rows of one pass; the next one continues.
	maxFound = 20_000
	// rowsAtOnce bounds the rows of one statement.
	rowsAtOnce = 1000
)

// Kinds of entries.
const (
	Accepted = "ACCEPTED" // an order took units
	Returned = "RETURNED" // units of an order are for sale again
	Retaken  = "RETAKEN"  // an order took its returned units again: its payment came late
)

// LogEntry is a leaf of the log of a sale.
type LogEntry struct {
	Kind     string `json:"kind"`
	Task     string `json:"task"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	Buyer    string `json:"buyer,omitempty"` // BuyerHash; of ACCEPTED
	At       int64  `json:"at,omitempty"`    // time of acceptance in Unix seconds; of ACCEPTED
}

// BuyerHash returns what a log has instead of the user: the SHA-256 of the task, a line feed
// and the user, in hexadecimal. It differs for each order.
func BuyerHash(task, user string) string {
	sum := sha256.Sum256([]byte(task + "\n" + user))
	return hex.EncodeToString(sum[:])
}

var (
	hasher = rfc6962.DefaultHasher
	ranges = compact.RangeFactory{Hash: hasher.HashChildren}
)

// Logger appends what was committed to the logs of the sales. Any number of processes may
// run it at once: of two appends to one position one is written.
type Logger struct {
	DB    *postgres.DB
	Clock clock.Clock
	Log   *slog.Logger

	// Used by Step alone.
	looked, whole time.Time // last passes of each kind that failed for no sale; zero before the first
	late          time.Time // orders created before it were read again
}

// Loop returns the loop that logs.
func (l *Logger) Loop() periodic.Loop {
	return periodic.Loop{Name: "log acceptances", Every: logEvery, Timeout: logTimeout, Step: l.Step, Log: l.Log,
		HasWork: l.DB.AnyRows(func() *sql.Selector {
			return postgres.Rows(sale.Table, openSales(look{now: l.Clock.Now().UTC(), open: open}))
		})}
}

// Step logs what is visible and not logged. It is a periodic.Step.
func (l *Logger) Step(ctx context.Context) (map[string]int, error) {
	now := l.Clock.Now().UTC()
	since := look{now: now, open: open, late: l.late,
		orders: l.looked.Add(-recentOrders), moves: l.looked.Add(-recentMoves)}
	if since.lateEnd = now.Add(-lateOrders); since.lateEnd.After(since.orders) {
		since.lateEnd = since.orders
	}
	whole := now.Sub(l.whole) >= wholeEvery
	if whole {
		since = look{now: now, open: loggedFor}
	}
	logged, more, err := l.pass(ctx, since)
	if err != nil {
		return nil, err
	}
	if !more {
		l.looked, l.late = now, now.Add(-lateOrders)
		if whole {
			l.whole = now
		}
	}
	return map[string]int{"logged": logged}, nil
}

// look selects the rows of the sales that ended at most open before now, made since a time, and
// the orders made from late to lateEnd.
type look struct {
	now           time.Time
	open          time.Duration
	orders, moves time.Time
	late, lateEnd time.Time
}

// pass logs the rows of a look and returns how many it did, and whether there are more.
func (l *Logger) pass(ctx context.Context, since look) (logged int, more bool, err error) {
	var found map[id.Sale]*batch
	err = l.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		found, more, err = find(ctx, tx, since)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("find what is not logged: %w", err)
	}
	for of, b := range found {
		rows := b.entries()
		if len(rows) == 0 {
			continue
		}
		err := l.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return appendTo(ctx, tx, l.DB.Dialect, of, rows)
		})
		if postgres.IsUnique(err) {
			more = true // another process logged some of them
			continue
		}
		if err != nil {
			return logged, false, fmt.Errorf("append to the log of %s: %w", of.Public(), err)
		}
		logged += len(rows)
	}
	return logged, more, nil
}

// row is an entry that is to be logged, with the id of its order or line of the ledger.
type row struct {
	id    uuid.UUID
	entry LogEntry
}

// batch is what is to be logged of a sale.
type batch struct {
	accepted []row
	returned []row // of orders in the log
	retaken  []row
	both     map[string][]row // by task: returned, of orders in accepted
}

// entries returns the rows in an order in which no prefix has more units than Postgres
// had: what was returned, then the orders that were accepted and returned, then the others.
func (b *batch) entries() []row {
	rows := b.returned
	for _, a := range b.accepted {
		if back := b.both[a.entry.Task]; back != nil {
			rows = append(append(rows, a), back...)
		}
	}
	for _, a := range b.accepted {
		if b.both[a.entry.Task] == nil {
			rows = append(rows, a)
		}
	}
	return append(rows, b.retaken...)
}

// openSales selects the sales of a look.
func openSales(since look) predicate.Sale {
	return sale.And(sale.EndsAtGT(since.now.Add(-since.open)), sale.StartsAtLTE(since.now))
}

// unlogged returns the orders of a look that are not logged, and whether there are more. Recent
// and late ones are read by a statement each: without statistics, Postgres reads the whole table
// for either.
func (since look) unlogged(ctx context.Context, tx *ent.Tx, sales []id.Sale) (rows []*ent.Order, more bool, err error) {
	times := []predicate.Order{entorder.CreatedAtGTE(since.orders)}
	if since.late.Before(since.lateEnd) {
		times = append(times, entorder.And(entorder.CreatedAtGTE(since.late), entorder.CreatedAtLT(since.lateEnd)))
	}
	for _, made := range times {
		some, err := tx.Order.Query().Where(orderNotLogged, entorder.SaleIDIn(sales...), made).
			Limit(maxFound).Select(loggedColumns...).All(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("read orders: %w", err)
		}
		rows, more = append(rows, some...), more || len(some) == maxFound
	}
	return rows, more, nil
}

// find returns what is not logged, by sale, and whether there is more.
func find(ctx context.Context, tx *ent.Tx, since look) (found map[id.Sale]*batch, more bool, err error) {
	sales, err := tx.Sale.Query().Where(openSales(since)).IDs(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list sales: %w", err)
	}
	if len(sales) == 0 {
		return nil, false, nil
	}
	items, err := tx.SaleItem.Query().Where(saleitem.SaleIDIn(sales...)).IDs(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list items: %w", err)
	}
	taken, more, err := since.unlogged(ctx, tx, sales)
	if err != nil {
		return nil, false, err
	}
	moved, err := tx.StockMovement.Query().Where(moveNotLogged, stockmovement.ItemIDIn(items...),
		stockmovement.IDGTE(madeAt(since.moves)),
		stockmovement.KindIn(stockmovement.KindRELEASE, stockmovement.KindRESTOCK, stockmovement.KindRETAKE)).
		Order(ent.Asc(stockmovement.FieldID)).Limit(maxFound).All(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read the ledger: %w", err)
	}
	found = map[id.Sale]*batch{}
	of := func(s id.Sale) *batch {
		if found[s] == nil {
			found[s] = &batch{both: map[string][]row{}}
		}
		return found[s]
	}
	here := make(map[id.Order]bool, len(taken))
	accept := func(o *ent.Order) {
		task := id.Task(o.ID).Public()
		here[o.ID] = true
		of(o.SaleID).accepted = append(of(o.SaleID).accepted, row{o.ID.UUID(), LogEntry{
			Kind: Accepted, Task: task, Item: o.ItemID.Public(), Quantity: o.Quantity, Buyer: BuyerHash(task, o.UserID.Public()),
			At: o.ReservedAt.Unix(),
		}})
	}
	for _, o := range taken {
		accept(o)
	}
	known, logged, err := ordersOf(ctx, tx, moved)
	if err != nil {
		return nil, false, err
	}
	for _, m := range moved {
		o := known[m.OrderID]
		if o == nil {
			continue // of a hold, or of an order that was deleted
		}
		if !logged[o.ID] && !here[o.ID] {
			accept(o) // it became visible late; who took its units is not logged before it
		}
		task := id.Task(o.ID).Public()
		r := row{m.ID, LogEntry{Kind: Returned, Task: task, Item: m.ItemID.Public(), Quantity: m.Quantity}}
		b := of(o.SaleID)
		switch {
		case m.Kind == stockmovement.KindRETAKE:
			r.entry.Kind = Retaken
			b.retaken = append(b.retaken, r)
		case logged[o.ID]:
			b.returned = append(b.returned, r)
		default:
			b.both[r.entry.Task] = append(b.both[r.entry.Task], r)
		}
	}
	return found, more || len(moved) == maxFound, nil
}

// loggedColumns are those of an order that its entry has.
var loggedColumns = []string{
	entorder.FieldID, entorder.FieldSaleID, entorder.FieldItemID, entorder.FieldUserID, entorder.FieldQuantity,
	entorder.FieldReservedAt,
}

// ordersOf returns the orders of lines of the ledger by their key, which is that of the
// order, or of the refund of some of its units; and which orders are logged.
func ordersOf(ctx context.Context, tx *ent.Tx, moved []*ent.StockMovement) (found map[uuid.UUID]*ent.Order,
	logged map[id.Order]bool, err error) {
	keys := make(map[uuid.UUID]id.Order, len(moved))
	refunds := make([]id.Refund, len(moved))
	for i, m := range moved {
		keys[m.OrderID], refunds[i] = id.Order(m.OrderID), id.Refund(m.OrderID)
	}
	for some := range slices.Chunk(refunds, rowsAtOnce) {
		rows, err := tx.Refund.Query().Where(refund.IDIn(some...)).All(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("read refunds: %w", err)
		}
		for _, r := range rows {
			keys[r.ID.UUID()] = r.OrderID
		}
	}
	orders := map[id.Order]*ent.Order{}
	logged = map[id.Order]bool{}
	for some := range slices.Chunk(slices.Collect(maps.Values(keys)), rowsAtOnce) {
		rows, err := tx.Order.Query().Where(entorder.IDIn(some...)).Select(loggedColumns...).All(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("read orders of the ledger: %w", err)
		}
		for _, o := range rows {
			orders[o.ID] = o
		}
		ids, err := tx.AcceptanceEntry.Query().Where(acceptanceentry.IDIn(id.As[uuid.UUID](some)...)).IDs(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("read their entries: %w", err)
		}
		for _, u := range ids {
			logged[id.Order(u)] = true
		}
	}
	found = make(map[uuid.UUID]*ent.Order, len(keys))
	for key, order := range keys {
		found[key] = orders[order]
	}
	return found, logged, nil
}

// orderNotLogged and moveNotLogged select rows without an entry.
func orderNotLogged(q *sql.Selector) { notLogged(q, entorder.FieldID) }
func moveNotLogged(q *sql.Selector)  { notLogged(q, stockmovement.FieldID) }

func notLogged(q *sql.Selector, field string) {
	entries := sql.Dialect(q.Dialect()).Table(acceptanceentry.Table)
	q.Where(sql.NotExists(sql.Dialect(q.Dialect()).Select(entries.C(acceptanceentry.FieldID)).From(entries).
		Where(sql.ColumnsEQ(entries.C(acceptanceentry.FieldID), q.C(field)))))
}

// madeAt returns the first id that is made at a time.
func madeAt(t time.Time) (u uuid.UUID) {
	ms := uint64(max(0, t.UnixMilli()))
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return u
}

// appendTo appends rows to the log of a sale. The key (sale, position) makes one of two
// processes fail that append at once.
func appendTo(ctx context.Context, tx *ent.Tx, on string, of id.Sale, rows []row) error {
	t := tiles{tx.AcceptanceEntry, of}
	size, err := t.size(ctx)
	if err != nil {
		return err
	}
	tree, err := t.tree(ctx, size)
	if err != nil {
		return err
	}
	leaves := make([]leaf, len(rows))
	for i, r := range rows {
		text, err := json.Marshal(r.entry)
		if err != nil {
			return err
		}
		leaves[i] = leaf{id: r.id, text: string(text)}
		err = tree.Append(hasher.HashLeaf(text), func(node compact.NodeID, hash []byte) {
			if node.Level > 0 && node.Level%tileHeight == 0 {
				leaves[i].nodes = append(leaves[i].nodes, hash...) // tile levels from 1 up: from the leaf to the root
			}
		})
		if err != nil {
			return err
		}
	}
	write := insertArrays
	if on == dialect.SQLite {
		write = insertRows
	}
	for some := range slices.Chunk(leaves, rowsAtOnce) {
		if err := write(ctx, tx, of, size, some); err != nil {
			return fmt.Errorf("write %d entries: %w", len(some), err)
		}
		size += uint64(len(some))
	}
	return nil
}

// leaf is an entry as it is stored.
type leaf struct {
	id    uuid.UUID
	text  string
	nodes []byte // of the tiles that end with it
}

// insertArrays writes leaves from a position on with one statement whose text does not
// depend on their number.
func insertArrays(ctx context.Context, tx *ent.Tx, of id.Sale, from uint64, leaves []leaf) error {
	_, err := tx.ExecContext(postgres.WithPrepared(ctx), `
INSERT INTO acceptance_entries (id, sale_id, position, entry, nodes)
SELECT id, $1, $2::int8 + n - 1, entry, NULLIF(nodes, '')
FROM unnest($3::uuid[], $4::text[], $5::bytea[]) WITH ORDINALITY AS t (id, entry, nodes, n)`,
		of, from,
		postgres.Array(leaves, func(dst []byte, l leaf) []byte { return postgres.AppendUUID(dst, l.id) }),
		postgres.Array(leaves, func(dst []byte, l leaf) []byte { return postgres.AppendText(dst, l.text) }),
		postgres.Array(leaves, func(dst []byte, l leaf) []byte {
			return postgres.AppendText(dst, `\x`+hex.EncodeToString(l.nodes))
		}))
	return err
}

// insertRows writes the same rows as insertArrays in SQLite.
func insertRows(ctx context.Context, tx *ent.Tx, of id.Sale, from uint64, leaves []leaf) error {
	creates := make([]*ent.AcceptanceEntryCreate, len(leaves))
	for i, l := range leaves {
		creates[i] = tx.AcceptanceEntry.Create().SetID(l.id).SetSaleID(of).SetPosition(int64(from) + int64(i)).
			SetEntry(l.text)
		if l.nodes != nil {
			creates[i].SetNodes(l.nodes)
		}
	}
	return tx.AcceptanceEntry.CreateBulk(creates...).Exec(ctx)
}
