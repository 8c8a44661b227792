package receipt_test

import (
	"testing"

	"seckill/internal/pay/receipt"
	"seckill/internal/platform/money"
)

func TestTheTaxInAPriceIsRoundedHalfUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		percent   string
		price, in int64
	}{{"19", 11900, 1900}, {"19", 1999, 319}, {"8.1", 10810, 810}, {"7.75", 10775, 775}, {"0", 500, 0}, {"50", 3, 1}, {"20", 69900, 11650}, {"19", 0, 0}} {
		tax, err := receipt.NewTax("VAT", c.percent)
		if err != nil {
			t.Fatal(err)
		}
		if got := tax.In(money.Amount{Minor: c.price, Currency: "EUR"}); got.Minor != c.in || got.Currency != "EUR" {
			t.Errorf("%s %% in %d is %+v, want %d", c.percent, c.price, got, c.in)
		}
	}
	for _, percent := range []string{"", "x", "119", "-1", "1.234", "1,5"} {
		if _, err := receipt.NewTax("VAT", percent); err == nil {
			t.Errorf("%q is a rate", percent)
		}
	}
}
