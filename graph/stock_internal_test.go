package graph

import (
	"testing"
	"time"

	"seckill/internal/buy/storefront"
)

// The revision of a gate grows by one with each order: shown, it would tell how many were sold.
func TestAHiddenStockCountsNoOrders(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	first := toStock(storefront.Stock{Level: storefront.Plenty, Remaining: 90, Total: 100, Revision: 10, UpdatedAt: at}, true)
	second := toStock(storefront.Stock{Level: storefront.Plenty, Remaining: 60, Total: 100, Revision: 40, UpdatedAt: at}, true)
	if *first != *second || first.Remaining != nil || first.Total != nil {
		t.Errorf("%+v and then %+v", first, second)
	}
	later := toStock(storefront.Stock{Level: storefront.Low, Remaining: 9, Total: 100, Revision: 91, UpdatedAt: at.Add(time.Second)}, true)
	if later.Revision <= second.Revision {
		t.Errorf("revision %d after %d", later.Revision, second.Revision)
	}
	if open := toStock(storefront.Stock{Remaining: 60, Total: 100, Revision: 40, UpdatedAt: at}, false); open.Revision != 40 || *open.Remaining != 60 {
		t.Errorf("a public stock: %+v", open)
	}
}
