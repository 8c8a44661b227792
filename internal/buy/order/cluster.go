package order

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// LeastAccounts is how many accounts make a cluster.
const LeastAccounts = 2

// Cluster is the orders of several accounts of a sale that share a key.
type Cluster struct {
	Kind        person.Kind
	Label       string // names it within its sale
	Accounts    int
	Orders      int // in any state
	Units       int
	Unpaid      int       // orders that wait for payment, those under review included
	Held        int       // orders under review
	First, Last time.Time // of the reservations
}

// ClusterPosition is a place in the list of clusters; zero = its beginning.
type ClusterPosition struct {
	Accounts int
	Label    string
}

// Position returns the place of a cluster.
func (c Cluster) Position() ClusterPosition { return ClusterPosition{c.Accounts, c.Label} }

// String returns the form of a cursor.
func (p ClusterPosition) String() string { return strconv.Itoa(p.Accounts) + "." + p.Label }

// ParseClusterPosition reads what String returns.
func ParseClusterPosition(text string) (ClusterPosition, error) {
	number, label, ok := strings.Cut(text, ".")
	accounts, err := strconv.Atoi(number)
	if !ok || err != nil || person.KindOf(label) == "" || len(label) != person.LabelChars {
		return ClusterPosition{}, errors.New("malformed position of a cluster")
	}
	return ClusterPosition{accounts, label}, nil
}

// ClustersInput asks for clusters of a sale, those with the most accounts first.
type ClustersInput struct {
	Sale     id.Sale
	Accounts int // at least so many; 0 = LeastAccounts
	// Open leaves out clusters without an unpaid order that was never under review.
	Open  bool
	After ClusterPosition
	Limit int
}

// clusters is one aggregate over the orders of a sale, which order_sale_id_created_at finds. The
// keys of a person are in one column: "c…,a…", and those of access rules behind them. It needs no index of the keys, which each order of a
// rush would pay for.
const clusters = `
WITH shared AS (
  SELECT substr(person_keys, 1, 17) AS shared_key, user_id, quantity, reserved_at, status, review
  FROM orders WHERE sale_id = $1 AND person_keys LIKE 'c%'
  UNION ALL
  SELECT CASE WHEN person_keys LIKE 'a%' THEN substr(person_keys, 1, 17) ELSE substr(person_keys, 19, 17) END, user_id, quantity, reserved_at, status, review
  FROM orders WHERE sale_id = $1 AND (person_keys LIKE 'a%' OR substr(person_keys, 19, 1) = 'a')
  UNION ALL
  SELECT payment_key, user_id, quantity, reserved_at, status, review FROM orders WHERE sale_id = $1 AND payment_key IS NOT NULL
  UNION ALL
  SELECT network_key, user_id, quantity, reserved_at, status, review FROM orders WHERE sale_id = $1 AND network_key IS NOT NULL
  UNION ALL
  SELECT device_key, user_id, quantity, reserved_at, status, review FROM orders WHERE sale_id = $1 AND device_key IS NOT NULL
)
SELECT substr(shared_key, 1, 9) AS label, COUNT(DISTINCT user_id) AS accounts, COUNT(*), SUM(quantity), MIN(reserved_at), MAX(reserved_at),
       SUM(CASE WHEN status = 'PENDING_PAYMENT' THEN 1 ELSE 0 END), SUM(CASE WHEN status = 'PENDING_PAYMENT' AND review = 'HELD' THEN 1 ELSE 0 END)
FROM shared GROUP BY substr(shared_key, 1, 9)
HAVING COUNT(DISTINCT user_id) >= $2
   AND SUM(CASE WHEN status = 'PENDING_PAYMENT' AND review IS NULL THEN 1 ELSE 0 END) >= $3
   AND ($4 = 0 OR COUNT(DISTINCT user_id) < $4 OR COUNT(DISTINCT user_id) = $4 AND substr(shared_key, 1, 9) > $5)
ORDER BY accounts DESC, label LIMIT $6`

// Clusters returns clusters of the orders of a sale.
func (s *Store) Clusters(ctx context.Context, in ClustersInput) ([]Cluster, error) {
	open := 0
	if in.Open {
		open = 1
	}
	rows, err := s.db.SQL.QueryContext(ctx, clusters, in.Sale, max(in.Accounts, LeastAccounts), open, in.After.Accounts,
		in.After.Label, in.Limit)
	if err != nil {
		return nil, fmt.Errorf("read clusters of sale %s: %w", in.Sale, err)
	}
	defer rows.Close()
	var found []Cluster
	for rows.Next() {
		var c Cluster
		var first, last moment
		if err := rows.Scan(&c.Label, &c.Accounts, &c.Orders, &c.Units, &first, &last, &c.Unpaid, &c.Held); err != nil {
			return nil, fmt.Errorf("read a cluster: %w", err)
		}
		c.Kind, c.First, c.Last = person.KindOf(c.Label), first.at, last.at
		found = append(found, c)
	}
	return found, rows.Err()
}

// moment scans the time of an aggregate, which SQLite returns as text.
type moment struct{ at time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(v any) error {
	switch v := v.(type) {
	case time.Time:
		m.at = v.UTC()
		return nil
	case string:
		for _, layout := range []string{"2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999 -0700 MST",
			time.RFC3339Nano} {
			if at, err := time.Parse(layout, v); err == nil {
				m.at = at.UTC()
				return nil
			}
		}
	}
	return fmt.Errorf("%T %v is no time", v, v)
}

// inCluster matches the orders of the cluster with a label. The caller names the sale.
func inCluster(label string) predicate.Order {
	return func(s *sql.Selector) {
		begins := func(column string, at int) *sql.Predicate {
			return sql.P(func(b *sql.Builder) {
				b.WriteString("substr(").Ident(s.C(column)).
					WriteString(", " + strconv.Itoa(at) + ", " + strconv.Itoa(person.LabelChars) + ") = ").Arg(label)
			})
		}
		switch person.KindOf(label) {
		case person.Contact:
			s.Where(begins(entorder.FieldPersonKeys, 1))
		case person.Address:
			s.Where(sql.Or(begins(entorder.FieldPersonKeys, 1), begins(entorder.FieldPersonKeys, person.KeyChars+2)))
		case person.Payment:
			s.Where(begins(entorder.FieldPaymentKey, 1))
		case person.Network:
			s.Where(begins(entorder.FieldNetworkKey, 1))
		case person.Device:
			s.Where(begins(entorder.FieldDeviceKey, 1))
		case person.Account, person.Code, "":
			s.Where(sql.False())
		}
	}
}

// inReview matches orders that are held for review, by order_in_review.
func inReview() predicate.Order {
	return entorder.And(entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.ReviewEQ(entorder.ReviewHELD))
}

// Unreviewed returns unpaid orders of a cluster that are not under review, the oldest first. fresh
// leaves out those that were released before.
func (s *Store) Unreviewed(ctx context.Context, sale id.Sale, label string, fresh bool, limit int) ([]*Order, error) {
	query := s.db.Ent.Order.Query().Where(entorder.SaleID(sale), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT),
		inCluster(label))
	if fresh {
		query.Where(entorder.ReviewIsNil())
	} else {
		query.Where(entorder.Or(entorder.ReviewIsNil(), entorder.ReviewEQ(entorder.ReviewRELEASED)))
	}
	rows, err := query.Order(ent.Asc(entorder.FieldCreatedAt, entorder.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read orders of cluster %s: %w", label, err)
	}
	return fromRows(rows), nil
}

// HasUnpaid reports whether a sale has an unpaid order that was never under review.
func (s *Store) HasUnpaid(ctx context.Context, sale id.Sale) (bool, error) {
	found, err := s.db.Ent.Order.Query().Where(entorder.SaleID(sale), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT),
		entorder.ReviewIsNil()).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("look for unpaid orders of sale %s: %w", sale, err)
	}
	return found, nil
}
