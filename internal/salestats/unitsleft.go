package salestats

import (
	"context"
	"time"

	"github.com/google/uuid"

	"seckill/internal/reservation"
	"seckill/internal/sale"
)

// unitsTimeout is the timeout of one reading of the catalogue for UnitsLeft.
const unitsTimeout = time.Second

// UnitsLeft returns a function for Config.Remaining: the units left in each loaded sale
// whose gates are in the cache. A sale with an unknown gate is left out.
func UnitsLeft(catalog *sale.Catalog, stock *reservation.StockCache) func() map[uuid.UUID]int {
	return func() map[uuid.UUID]int {
		ctx, cancel := context.WithTimeout(context.Background(), unitsTimeout)
		defer cancel()
		loaded, err := catalog.Loaded(ctx)
		if err != nil {
			return nil
		}
		left := map[uuid.UUID]int{}
		for _, v := range loaded {
			units, known := 0, len(v.Items) > 0
			for _, item := range v.Items {
				view, ok := stock.View(item.ID)
				units, known = units+view.Stock, known && ok
			}
			if known {
				left[v.ID] = units
			}
		}
		return left
	}
}
