package report

import (
	entorder "seckill/ent/order"
	"seckill/internal/order"
	"seckill/internal/salestats"
)

// Finding is a mismatch between figures.
type Finding struct {
	text   string
	values []any
}

// In returns the finding in the reader's language.
func (f Finding) In(reader Reader) string { return reader.words().say(f.text, f.values...) }

// String returns the finding in English.
func (f Finding) String() string { return f.In(Reader{}) }

// MarshalText implements encoding.TextMarshaler.
func (f Finding) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Finding) UnmarshalText(text []byte) error {
	*f = Finding{text: string(text)}
	return nil
}

// check adds findings about each mismatch: the columns of each item, the ledger, the
// orders, and the gate while there is one.
func (r *Report) check(s *salestats.Stats, b *book) {
	find := func(format string, args ...any) { r.Findings = append(r.Findings, Finding{format, args}) }
	for _, it := range r.Items {
		if it.Available+it.Held+it.Sold != it.Total || it.Available < 0 || it.Held < 0 || it.Sold < 0 {
			find("%s: available %d + held %d + sold %d is not the total of %d.", it.Goods, it.Available, it.Held, it.Sold, it.Total)
		}
	}
	// A sale enters the ledger when it is approved.
	if opening := b.moved(opened); opening > 0 && opening+b.moved(adjusted)-b.moved(order.Withdraw) != r.Units.Total {
		find("The ledger put %d units on sale, and there are %d.", opening+b.moved(adjusted)-b.moved(order.Withdraw), r.Units.Total)
	}
	holds := b.taken() - b.moved(order.Reacquire)
	if held := holds - b.moved(order.Sell) - b.moved(order.Release); held != r.Units.Held {
		find("The ledger holds %d units, and %d are held.", held, r.Units.Held)
	}
	if sold := b.moved(order.Sell, order.Reacquire) - b.moved(order.Restock, order.Withdraw); sold != r.Units.Sold {
		find("The ledger sold %d units, and %d are sold.", sold, r.Units.Sold)
	}
	if held := b.units[entorder.StatusPENDING_PAYMENT]; held != r.Units.Held {
		find("Unpaid orders have %d units, and %d are held.", held, r.Units.Held)
	}
	if paid := b.units[entorder.StatusPAID] + b.units[entorder.StatusREFUNDING]; paid != r.Units.Sold {
		find("Paid orders have %d units, and %d are sold.", paid, r.Units.Sold)
	}
	if s.Units.Loaded && !s.Units.Conserved {
		find("The gate does not add up, or differs from the record: %d units in all, %d left.", s.Units.Total, s.Units.Remaining)
	}
	r.Conserved = len(r.Findings) == 0
}
