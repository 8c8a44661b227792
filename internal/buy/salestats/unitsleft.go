package salestats

import (
	"context"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// unitsTimeout is the timeout of one reading of the catalogue for UnitsLeft.
const unitsTimeout = time.Second

// Remaining returns the units left in sales.
type Remaining interface {
	// UnitsLeft returns the units left in each sale that has a gate, as last seen by this
	// process.
	UnitsLeft() map[id.Sale]int
}

// Gates are the gates of loaded sales as this process sees them.
type Gates struct {
	Catalog *sale.Catalog
	Stock   *reservation.StockCache
}

// UnitsLeft implements Remaining. A sale with an unknown gate is left out.
func (g Gates) UnitsLeft() map[id.Sale]int {
	ctx, cancel := context.WithTimeout(context.Background(), unitsTimeout)
	defer cancel()
	loaded, err := g.Catalog.Loaded(ctx)
	if err != nil {
		return nil
	}
	left := map[id.Sale]int{}
	for _, v := range loaded {
		units, known := 0, len(v.Items) > 0
		for _, item := range v.Items {
			view, ok := g.Stock.View(item.ID)
			units, known = units+view.Stock, known && ok
		}
		if known {
			left[v.ID] = units
		}
	}
	return left
}
