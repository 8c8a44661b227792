package sale_test

import (
	"fmt"
	"time"

	"seckill/internal/buy/sale"
)

// What buyers see follows from status, clock and stock; the scheduler records the opening and the
// end afterwards.
func ExampleSale_Phase() {
	opening := time.Date(2026, time.November, 11, 20, 0, 0, 0, time.UTC)
	s := sale.Sale{Status: sale.Preheated, StartsAt: opening, EndsAt: opening.Add(time.Hour)}

	fmt.Println(s.Phase(opening.Add(-time.Second), false), s.StatusAt(opening.Add(-time.Second)))
	fmt.Println(s.Phase(opening, false), s.StatusAt(opening))
	fmt.Println(s.Phase(opening.Add(time.Minute), true), s.StatusAt(opening.Add(time.Minute)))
	fmt.Println(s.Phase(opening.Add(time.Hour), true), s.StatusAt(opening.Add(time.Hour)))
	// Output:
	// UPCOMING PREHEATED
	// LIVE LIVE
	// SOLD_OUT LIVE
	// ENDED ENDED
}

func ExampleAllowed() {
	fmt.Println(sale.Allowed(sale.ActPause, sale.Live, sale.Paused))
	fmt.Println(sale.Allowed(sale.ActPause, sale.Ended, sale.Paused))
	// Output:
	// true
	// false
}
