package operator

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/ent/predicate"
	"seckill/ent/saleitem"
	entuser "seckill/ent/user"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

const (
	// maxFound limits the results of a search.
	maxFound = 50
	// minQuery and maxQuery bound the search text, in characters.
	minQuery = 2
	maxQuery = 254
)

// Person is a user as shown to support staff.
type Person struct {
	ID          id.User
	Account     string
	DisplayName string
	Role        auth.Role
	CreatedAt   time.Time
	Disabled    bool // cannot sign in
	TOTP        bool // sign-in needs a one-time code
}

// FindUsers returns the users of account.Names.Search, newest first, at most 50.
func (s *Service) FindUsers(ctx context.Context, by sale.Actor, text string) ([]Person, error) {
	if err := requireStaff(by); err != nil {
		return nil, err
	}
	q, err := queryOf(text)
	if err != nil {
		return nil, err
	}
	rows, err := s.users(ctx, q)
	if err != nil {
		return nil, err
	}
	s.audit(ctx, by.ID, account.EventBuyerSearch, fmt.Sprintf("%d found", len(rows)))
	people := collect.Map(rows, func(r *ent.User) Person {
		return Person{ID: r.ID, Account: r.Account, DisplayName: r.DisplayName, Role: auth.Role(r.Role),
			CreatedAt: r.CreatedAt.UTC(), Disabled: r.DisabledAt != nil, TOTP: r.TotpSince != nil}
	})
	return people, nil
}

func queryOf(text string) (typed.Query, error) {
	q := typed.QueryOf(text)
	switch n := utf8.RuneCountInString(q.Line); {
	case n < minQuery || q.Key == "":
		return q, invalid(fault.MinLength(minQuery), "text")
	case n > maxQuery:
		return q, invalid(fault.MaxLength(maxQuery), "text")
	}
	return q, nil
}

func (s *Service) users(ctx context.Context, q typed.Query) ([]*ent.User, error) {
	rows, err := s.cfg.DB.Ent.User.Query().Where(s.cfg.Names.Search(q)).
		Order(ent.Desc(entuser.FieldCreatedAt, entuser.FieldID)).Limit(maxFound).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find users: %w", err)
	}
	return rows, nil
}

// ofItem matches the orders of an item, using the index on its sale.
func ofItem(item id.Item) predicate.Order {
	return entorder.And(entorder.ItemID(item), func(s *sql.Selector) {
		items := sql.Table(saleitem.Table)
		s.Where(sql.In(s.C(entorder.FieldSaleID), sql.Select(items.C(saleitem.FieldSaleID)).From(items).
			Where(sql.EQ(items.C(saleitem.FieldID), item))))
	})
}

// OrderMatch matches orders by a public id, else by a number, a transaction of a payment,
// or a buyer. A search for buyers is logged.
func (s *Service) OrderMatch(ctx context.Context, by sale.Actor, text string) (predicate.Order, error) {
	q, err := queryOf(text)
	if err != nil {
		return nil, err
	}
	if kind, u, err := id.Split(strings.ToLower(q.Key)); err == nil {
		switch kind {
		case id.KindOrder, id.KindTask:
			return entorder.ID(id.Order(u)), nil
		case id.KindSale:
			return entorder.SaleID(id.Sale(u)), nil
		case id.KindItem:
			return ofItem(id.Item(u)), nil
		case id.KindUser:
			return entorder.UserID(id.User(u)), nil
		}
	}
	paid, err := s.paidBy(ctx, q)
	if err != nil {
		return nil, err
	}
	match := []predicate.Order{order.Numbered(q)}
	if len(paid) > 0 {
		match = append(match, entorder.IDIn(paid...))
	}
	buyers, err := s.users(ctx, q)
	if err != nil {
		return nil, err
	}
	s.audit(ctx, by.ID, account.EventBuyerSearch, fmt.Sprintf("orders of %d found", len(buyers)))
	if len(buyers) > 0 {
		ids := collect.Map(buyers, func(b *ent.User) id.User { return b.ID })
		match = append(match, entorder.UserIDIn(ids...))
	}
	return entorder.Or(match...), nil
}

// maxPaid bounds the payments that share a number: those of one order, and of providers
// that use the same one.
const maxPaid = 100

// paidBy returns the orders of payments with a transaction or name of their provider. The
// search has their ids instead of a subquery, with which Postgres would read all orders.
func (s *Service) paidBy(ctx context.Context, q typed.Query) ([]id.Order, error) {
	// providers write theirs in groups, some in capitals
	refs := []string{q.Key, strings.Join(strings.Fields(q.Key), ""), strings.ToUpper(q.Key)}
	rows, err := s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.Or(entpayment.TransactionIn(refs...), entpayment.ProviderRefIn(refs...))).
		Select(entpayment.FieldOrderID).Limit(maxPaid).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find payments: %w", err)
	}
	return collect.Map(rows, func(row *ent.Payment) id.Order { return row.OrderID }), nil
}
