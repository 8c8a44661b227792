package order

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

const maxPage = 200

// CursorOf returns the position of an order in lists.
func CursorOf(o *Order) cursor.Position { return cursor.Position{At: o.CreatedAt, ID: o.ID.UUID()} }

// Filter selects orders; its fields are combined with AND.
type Filter struct {
	User     id.User         // zero = all users
	Sale     id.Sale         // zero = all sales
	Statuses []Status        // nil = all states
	From     time.Time       // created then or later; zero = no bound
	Until    time.Time       // created before; zero = no bound
	Cluster  string          // label of a cluster of the sale; "" = all orders
	InReview bool            // only those held for review
	Match    predicate.Order // a further condition; nil = none
}

// ListInput asks for a page of orders, newest first.
type ListInput struct {
	Filter
	After  *cursor.Position // only older ones
	Before *cursor.Position // only newer ones
	Limit  int              // 1 to maxPage
	// Backward takes the page from the oldest end, or just before Before, like "last"
	// and "before" in GraphQL. The page itself is still newest first.
	Backward bool
	// OldestFirst turns the list around: After and Before are then newer and older ones,
	// and the page is oldest first.
	OldestFirst bool
}

// Page is one page of a list, in its order.
type Page struct {
	Orders      []*Order
	HasNext     bool // there are orders after the page
	HasPrevious bool // there are orders before the page
}

// List returns a page of orders from Postgres.
func (s *Store) List(ctx context.Context, in ListInput) (Page, error) {
	if in.Limit < 1 || in.Limit > maxPage {
		return Page{}, fmt.Errorf("list orders: page of %d, want 1 to %d", in.Limit, maxPage)
	}
	query := s.db.Ent.Order.Query().Where(in.predicates()...)
	following, preceding := olderThan, newerThan
	if in.OldestFirst {
		following, preceding = newerThan, olderThan
	}
	if in.After != nil {
		query.Where(following(*in.After))
	}
	if in.Before != nil {
		query.Where(preceding(*in.Before))
	}
	if in.Backward != in.OldestFirst {
		query.Order(ent.Asc(entorder.FieldCreatedAt, entorder.FieldID))
	} else {
		query.Order(ent.Desc(entorder.FieldCreatedAt, entorder.FieldID))
	}
	rows, err := query.Limit(in.Limit + 1).All(ctx)
	if err != nil {
		return Page{}, fmt.Errorf("list orders: %w", err)
	}
	more := len(rows) > in.Limit
	rows = rows[:min(len(rows), in.Limit)]
	page := Page{Orders: make([]*Order, 0, len(rows)), HasNext: more, HasPrevious: in.After != nil}
	for _, row := range rows {
		page.Orders = append(page.Orders, FromRow(row))
	}
	if in.Backward {
		slices.Reverse(page.Orders)
		page.HasNext, page.HasPrevious = in.Before != nil, more
	}
	return page, nil
}

// ListByUser returns a page of one user's orders.
func (s *Store) ListByUser(ctx context.Context, user id.User, in ListInput) (Page, error) {
	in.User = user
	return s.List(ctx, in)
}

// Count returns how many orders match a filter.
func (s *Store) Count(ctx context.Context, f Filter) (int, error) {
	n, err := s.db.Ent.Order.Query().Where(f.predicates()...).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count orders: %w", err)
	}
	return n, nil
}

func (f Filter) predicates() []predicate.Order {
	var ps []predicate.Order
	if !f.User.IsZero() {
		ps = append(ps, entorder.UserID(f.User))
	}
	if !f.Sale.IsZero() {
		ps = append(ps, entorder.SaleID(f.Sale))
	}
	if f.Statuses != nil {
		in := collect.Map(f.Statuses, func(s Status) entorder.Status { return entorder.Status(s) })
		ps = append(ps, entorder.StatusIn(in...))
	}
	if !f.From.IsZero() {
		ps = append(ps, entorder.CreatedAtGTE(f.From))
	}
	if !f.Until.IsZero() {
		ps = append(ps, entorder.CreatedAtLT(f.Until))
	}
	if f.Cluster != "" {
		ps = append(ps, inCluster(f.Cluster))
	}
	if f.InReview {
		ps = append(ps, inReview())
	}
	if f.Match != nil {
		ps = append(ps, f.Match)
	}
	return ps
}

// numberLike is a number of an order, or its beginning, without the hyphen.
var numberLike = regexp.MustCompile(`^([0-9]{8})([0-9A-Z]*)$`)

// misread restores characters of Number: it has none of those that people write instead.
var misread = strings.NewReplacer("O", "0", "I", "1", "L", "1")

// Numbered matches orders by their number or its beginning, in any spelling; a public id
// matches one order.
func Numbered(q typed.Query) predicate.Order {
	if kind, u, err := id.Split(strings.ToLower(q.Key)); err == nil && (kind == id.KindOrder || kind == id.KindTask) {
		return entorder.ID(id.Order(u))
	}
	number := strings.ToUpper(q.Key)
	if found := numberLike.FindStringSubmatch(typed.Code(q.Key)); found != nil {
		if number = found[1]; found[2] != "" {
			number += "-" + misread.Replace(found[2])
		}
	}
	return entorder.NumberHasPrefix(number)
}

// olderThan and newerThan bound the indexed column first and then compare the id for
// equal times.

func olderThan(c cursor.Position) predicate.Order {
	return entorder.And(entorder.CreatedAtLTE(c.At),
		entorder.Or(entorder.CreatedAtLT(c.At), entorder.IDLT(id.Order(c.ID))))
}

func newerThan(c cursor.Position) predicate.Order {
	return entorder.And(entorder.CreatedAtGTE(c.At),
		entorder.Or(entorder.CreatedAtGT(c.At), entorder.IDGT(id.Order(c.ID))))
}
