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

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"seckill/ent"
	"seckill/ent/acceptanceentry"
	entorder "seckill/ent/order"
	"seckill/ent/refund"
	"seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
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
	// recentOrders and recentMoves are how far back a pass looks. Ids say when a row was
	// made, by the clock of its process; it is visible after the commit of its transaction. A
	// unit must not be logged as taken again before it is logged as returned, so that moves
	// are looked for longer. Rows that become visible later are found by the longer looks.
	recentOrders = 10 * time.Second
	recentMoves  = time.Minute
	// longerEvery is the pause after which a pass looks back for longer, by recentLonger.
	longerEvery  = 30 * time.Second
	recentLonger = 10 * time.Minute
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
	looked, longer, whole time.Time // last passes of each kind that failed for no sale; zero before the first
}

// Loop returns the loop that logs.
func (l *Logger) Loop() periodic.Loop {
	return periodic.Loop{Name: "log acceptances", Every: logEvery, Timeout: logTimeout, Step: l.Step, Log: l.Log}
}

// Step logs what is visible and not logged. It is a periodic.Step.
func (l *Logger) Step(ctx context.Context) (map[string]int, error) {
	now := l.Clock.Now().UTC()
	since := look{orders: l.looked.Add(-recentOrders), moves: l.looked.Add(-recentMoves)}
	longer, whole := now.Sub(l.longer) >= longerEvery, now.Sub(l.whole) >= wholeEvery
	if longer {
		since = look{orders: now.Add(-recentLonger), moves: now.Add(-recentLonger)}
	}
	if whole {
		since = look{ended: now.Add(-loggedFor)}
	}
	logged, more, err := l.pass(ctx, since)
	if err != nil {
		return nil, err
	}
	if !more {
		l.looked = now
		if longer || whole {
			l.longer = now
		}
		if whole {
			l.whole = now
		}
	}
	return map[string]int{"logged": logged}, nil
}

// look selects rows: made from a time on, or all of the sales that end after a time.
type look struct{ orders, moves, ended time.Time }

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
		err := l.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return appendTo(ctx, tx, of, rows) })
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

// find returns what is not logged, by sale, and whether there is more.
func find(ctx context.Context, tx *ent.Tx, since look) (found map[id.Sale]*batch, more bool, err error) {
	orders := tx.Order.Query().Where(orderNotLogged)
	moves := tx.StockMovement.Query().Where(moveNotLogged,
		stockmovement.KindIn(stockmovement.KindRELEASE, stockmovement.KindRESTOCK, stockmovement.KindRETAKE))
	if since.ended.IsZero() {
		orders.Where(entorder.IDGTE(madeAt[id.Order](since.orders)))
		moves.Where(stockmovement.IDGTE(madeAt[uuid.UUID](since.moves)))
	} else {
		sales, err := tx.Sale.Query().Where(sale.EndsAtGT(since.ended)).IDs(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("list sales: %w", err)
		}
		items, err := tx.SaleItem.Query().Where(saleitem.SaleIDIn(sales...)).IDs(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("list items: %w", err)
		}
		orders.Where(entorder.SaleIDIn(sales...))
		moves.Where(stockmovement.ItemIDIn(items...))
	}
	taken, err := orders.Order(ent.Asc(entorder.FieldID)).Limit(maxFound).All(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read orders: %w", err)
	}
	moved, err := moves.Order(ent.Asc(stockmovement.FieldID)).Limit(maxFound).All(ctx)
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
	for _, o := range taken {
		task := id.Task(o.ID).Public()
		here[o.ID] = true
		of(o.SaleID).accepted = append(of(o.SaleID).accepted, row{o.ID.UUID(), LogEntry{
			Kind: Accepted, Task: task, Item: o.ItemID.Public(), Quantity: o.Quantity, Buyer: BuyerHash(task, o.UserID.Public()),
			At: o.ReservedAt.Unix(),
		}})
	}
	known, err := ordersOf(ctx, tx, moved)
	if err != nil {
		return nil, false, err
	}
	for _, m := range moved {
		order, ok := known[m.OrderID]
		if !ok {
			continue // it is logged after its order
		}
		r := row{m.ID, LogEntry{
			Kind: Returned, Task: id.Task(order.id).Public(), Item: m.ItemID.Public(), Quantity: m.Quantity,
		}}
		b := of(order.sale)
		switch {
		case !order.logged && !here[order.id]:
		case m.Kind == stockmovement.KindRETAKE:
			r.entry.Kind = Retaken
			b.retaken = append(b.retaken, r)
		case order.logged:
			b.returned = append(b.returned, r)
		default:
			b.both[r.entry.Task] = append(b.both[r.entry.Task], r)
		}
	}
	return found, len(taken) == maxFound || len(moved) == maxFound, nil
}

// moving is the order of a line of the ledger.
type moving struct {
	id     id.Order
	sale   id.Sale
	logged bool
}

// ordersOf returns the orders of lines of the ledger by their key: that of the order, or of
// the refund of some of its units.
func ordersOf(ctx context.Context, tx *ent.Tx, moved []*ent.StockMovement) (map[uuid.UUID]moving, error) {
	keys := make(map[uuid.UUID]id.Order, len(moved))
	refunds := make([]id.Refund, len(moved))
	for i, m := range moved {
		keys[m.OrderID], refunds[i] = id.Order(m.OrderID), id.Refund(m.OrderID)
	}
	found := make(map[uuid.UUID]moving, len(moved))
	for some := range slices.Chunk(refunds, rowsAtOnce) {
		rows, err := tx.Refund.Query().Where(refund.IDIn(some...)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read refunds: %w", err)
		}
		for _, r := range rows {
			keys[r.ID.UUID()] = r.OrderID
		}
	}
	orders := slices.Collect(maps.Values(keys))
	sales, logged := map[id.Order]id.Sale{}, map[id.Order]bool{}
	for some := range slices.Chunk(orders, rowsAtOnce) {
		rows, err := tx.Order.Query().Where(entorder.IDIn(some...)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read orders of the ledger: %w", err)
		}
		for _, o := range rows {
			sales[o.ID] = o.SaleID
		}
		ids, err := tx.AcceptanceEntry.Query().Where(acceptanceentry.IDIn(id.As[uuid.UUID](some)...)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("read their entries: %w", err)
		}
		for _, u := range ids {
			logged[id.Order(u)] = true
		}
	}
	for key, order := range keys {
		if of, ok := sales[order]; ok {
			found[key] = moving{order, of, logged[order]}
		}
	}
	return found, nil
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
func madeAt[T ~[16]byte](t time.Time) (u T) {
	ms := uint64(max(0, t.UnixMilli()))
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i))) //nolint:gosec // one byte of it
	}
	return u
}

// appendTo appends rows to the log of a sale. The key (sale, position) makes one of two
// processes fail that append at once.
func appendTo(ctx context.Context, tx *ent.Tx, of id.Sale, rows []row) error {
	t := tiles{tx.AcceptanceEntry, of}
	size, err := t.size(ctx)
	if err != nil {
		return err
	}
	tree, err := t.tree(ctx, size)
	if err != nil {
		return err
	}
	creates := make([]*ent.AcceptanceEntryCreate, len(rows))
	for i, r := range rows {
		text, err := json.Marshal(r.entry)
		if err != nil {
			return err
		}
		var nodes []byte // tile levels from 1 up: the visitor goes from the leaf to the root
		err = tree.Append(hasher.HashLeaf(text), func(node compact.NodeID, hash []byte) {
			if node.Level > 0 && node.Level%tileHeight == 0 {
				nodes = append(nodes, hash...)
			}
		})
		if err != nil {
			return err
		}
		creates[i] = tx.AcceptanceEntry.Create().SetID(r.id).SetSaleID(of).SetPosition(int64(size) + int64(i)). //nolint:gosec // a count of rows
															SetEntry(string(text))
		if nodes != nil {
			creates[i].SetNodes(nodes)
		}
	}
	for some := range slices.Chunk(creates, rowsAtOnce) {
		if err := tx.AcceptanceEntry.CreateBulk(some...).Exec(ctx); err != nil {
			return fmt.Errorf("write %d entries: %w", len(some), err)
		}
	}
	return nil
}
