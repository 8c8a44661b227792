package report

import (
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/buy/salestats"
)

// Finding is a mismatch between figures.
type Finding struct {
	text   text
	values []any
}

// In returns the finding in the reader's language.
func (f Finding) In(reader Reader) string { return reader.words().say(f.text, f.values...) }

// String returns the finding in English.
func (f Finding) String() string { return f.In(Reader{}) }

// MarshalText implements encoding.TextMarshaler.
func (f Finding) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Finding) UnmarshalText(read []byte) error {
	*f = Finding{text: text{en: string(read)}}
	return nil
}

// Findings. Their values are units.
var (
	columnsDiffer = text{"%s: available %d + held %d + sold %d is not the total of %d.",
		"%s：可售 %d + 待付款 %d + 已售 %d 不等于总数 %d。"}
	openingDiffers = text{"The ledger put %d units on sale, and there are %d.", "库存流水上架 %d 件，实际为 %d 件。"}
	heldDiffers    = text{"The ledger holds %d units, and %d are held.", "库存流水待付款 %d 件，实际为 %d 件。"}
	soldDiffers    = text{"The ledger sold %d units, and %d are sold.", "库存流水已售 %d 件，实际为 %d 件。"}
	unpaidDiffer   = text{"Unpaid orders have %d units, and %d are held.", "待付款订单共 %d 件，实际占用 %d 件。"}
	paidDiffer     = text{"Paid orders have %d units, and %d are sold.", "已付款订单共 %d 件，实际已售 %d 件。"}
	gateDiffers    = text{"The gate does not add up, or differs from the record: %d units in all, %d left.",
		"库存闸门账目不一致，或与记录不符：共 %d 件，剩余 %d 件。"}
)

// check adds findings about each mismatch: the columns of each item, the ledger, the
// orders, and the gate while there is one.
func (r *Report) check(s *salestats.Stats, b *book) {
	find := func(t text, args ...any) { r.Findings = append(r.Findings, Finding{t, args}) }
	for _, it := range r.Items {
		if it.Available+it.Held+it.Sold != it.Total || it.Available < 0 || it.Held < 0 || it.Sold < 0 {
			find(columnsDiffer, it.Goods, it.Available, it.Held, it.Sold, it.Total)
		}
	}
	// A sale enters the ledger when it is approved.
	if opening := b.moved(opened); opening > 0 && opening+b.moved(adjusted)-b.moved(order.Withdraw) != r.Units.Total {
		find(openingDiffers, opening+b.moved(adjusted)-b.moved(order.Withdraw), r.Units.Total)
	}
	holds := b.taken() - b.moved(order.Reacquire)
	if held := holds - b.moved(order.Sell) - b.moved(order.Release); held != r.Units.Held {
		find(heldDiffers, held, r.Units.Held)
	}
	if sold := b.moved(order.Sell, order.Reacquire) - b.moved(order.Restock, order.Withdraw); sold != r.Units.Sold {
		find(soldDiffers, sold, r.Units.Sold)
	}
	if held := b.units[entorder.StatusPENDING_PAYMENT]; held != r.Units.Held {
		find(unpaidDiffer, held, r.Units.Held)
	}
	if paid := b.units[entorder.StatusPAID] + b.units[entorder.StatusREFUNDING]; paid != r.Units.Sold {
		find(paidDiffer, paid, r.Units.Sold)
	}
	if s.Units.Loaded && !s.Units.Conserved {
		find(gateDiffers, s.Units.Total, s.Units.Remaining)
	}
	r.Conserved = len(r.Findings) == 0
}
