package money_test

import (
	"testing"

	"pgregory.net/rapid"

	"seckill/internal/money"
)

func TestAmountsAreShownWithTheDecimalsOfTheirCurrency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor int64
		code  string
		want  string
	}{{129900, "CNY", "1299.00"}, {5, "USD", "0.05"}, {500, "JPY", "500"}, {1234, "KWD", "1.234"}, {0, "CNY", "0.00"}} {
		if got := (money.Amount{Minor: c.minor, Currency: c.code}).Decimal(); got != c.want {
			t.Errorf("%d %s: %s, want %s", c.minor, c.code, got, c.want)
		}
	}
}

func TestParseRefusesWhatIsNoPrice(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "abc", "-1", "1.234", "1e400", "9999999999999999999999"} {
		if a, err := money.Parse(text, "CNY"); err == nil {
			t.Errorf("%q was read as %+v", text, a)
		}
	}
	if _, err := money.Parse("1.00", "XXQ"); err == nil {
		t.Error("an unknown currency was taken")
	}
}

func TestAmountsSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := money.Amount{
			Minor:    rapid.Int64Range(0, 1<<53).Draw(t, "minor"),
			Currency: rapid.SampledFrom([]string{"CNY", "USD", "EUR", "JPY", "KWD"}).Draw(t, "currency"),
		}
		back, err := money.Parse(a.Decimal(), a.Currency)
		if err != nil || back != a {
			t.Fatalf("%+v became %q and %+v: %v", a, a.Decimal(), back, err)
		}
	})
}
