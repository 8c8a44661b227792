package order

import (
	"context"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

const (
	// sharingLife bounds the age of a copy of a sale's clusters.
	sharingLife = 2 * time.Second
	// sharingFresh is the age from which a copy is read again while it is used.
	sharingFresh = sharingLife / 2
	// sharingWait is how long a buyer waits for the first copy of a sale.
	sharingWait = 200 * time.Millisecond
	// sharingSales is how many sales are copied, and sharingClusters how many clusters and buyers of
	// each, those with the most accounts: about 1 MB a sale.
	sharingSales    = 32
	sharingClusters = 5000
)

// Sharing has copies of the clusters of sales in this process. While they are used, they are
// read once a second. It is safe for concurrent use.
type Sharing struct {
	store *Store
	sales *lru.Cache[id.Sale, sharing]
	reads singleflight.Group
}

// sharing is the copy of a sale.
type sharing struct {
	orders map[string]int     // by the label of a cluster; nil = they could not be read
	payers map[id.User]string // labels of clusters by means of payment
	at     time.Time          // when the read began
}

// NewSharing returns a Sharing.
func NewSharing(s *Store) *Sharing {
	sales, err := lru.New[id.Sale, sharing](sharingSales)
	if err != nil {
		panic(err) // the size is positive
	}
	return &Sharing{store: s, sales: sales}
}

// Orders returns how many orders each cluster of a buyer has, by kind: the clusters of the given labels,
// and that of the means of payment of the buyer's orders. It returns nil if they are not known now.
func (s *Sharing) Orders(ctx context.Context, sale id.Sale, user id.User, labels []string) map[person.Kind]int {
	v, known := s.sales.Get(sale)
	age := s.store.clock.Now().Sub(v.at)
	if !known || age >= sharingFresh {
		read := s.reads.DoChan(sale.String(), func() (any, error) { return s.read(context.WithoutCancel(ctx), sale), nil })
		if !known || age >= sharingLife {
			timeout := time.NewTimer(sharingWait)
			defer timeout.Stop()
			select {
			case r := <-read:
				v = r.Val.(sharing)
			case <-timeout.C:
				return nil
			case <-ctx.Done():
				return nil
			}
		}
	}
	if v.orders == nil {
		return nil
	}
	counts := map[person.Kind]int{}
	for _, label := range append(labels, v.payers[user]) {
		counts[person.KindOf(label)] += v.orders[label]
	}
	return counts
}

// read replaces the copy of a sale. An error is remembered like a copy, so that a database that does
// not answer is not asked by every call.
func (s *Sharing) read(ctx context.Context, sale id.Sale) sharing {
	ctx, cancel := context.WithTimeout(ctx, sharingLife)
	defer cancel()
	v := sharing{at: s.store.clock.Now()}
	if orders, payers, err := s.store.sharing(ctx, sale); err == nil {
		v.orders, v.payers = orders, payers
	}
	s.sales.Add(sale, v)
	return v
}

func (s *Store) sharing(ctx context.Context, sale id.Sale) (orders map[string]int, payers map[id.User]string,
	err error) {
	found, err := s.Clusters(ctx, ClustersInput{Sale: sale, Limit: sharingClusters})
	if err != nil {
		return nil, nil, err
	}
	orders, payers = make(map[string]int, len(found)), map[id.User]string{}
	paid := false
	for _, c := range found {
		orders[c.Label] = c.Orders
		paid = paid || c.Kind == person.Payment
	}
	if !paid {
		return orders, payers, nil
	}
	rows, err := s.db.SQL.QueryContext(ctx, payersOfClusters, sale, sharingClusters)
	if err != nil {
		return nil, nil, fmt.Errorf("read payers of sale %s: %w", sale, err)
	}
	defer rows.Close()
	for rows.Next() {
		var user id.User
		var label string
		if err := rows.Scan(&user, &label); err != nil {
			return nil, nil, fmt.Errorf("read a payer: %w", err)
		}
		payers[user] = label
	}
	return orders, payers, rows.Err()
}

// payersOfClusters are the buyers of a sale whose means of payment another account used.
const payersOfClusters = `
SELECT user_id, substr(MAX(payment_key), 1, 9) FROM orders WHERE sale_id = $1 AND payment_key IN (
  SELECT payment_key FROM orders WHERE sale_id = $1 AND payment_key IS NOT NULL GROUP BY payment_key HAVING COUNT(DISTINCT user_id) > 1
) GROUP BY user_id LIMIT $2`
