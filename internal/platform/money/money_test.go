package money_test

import (
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"pgregory.net/rapid"

	"seckill/internal/platform/money"
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

// TestEveryCurrencyHasTheDecimalsOfISO4217 has the minor units of ISO 4217, list one; all other
// currencies have two. Providers charge in these, whatever the tables of browsers say.
func TestEveryCurrencyHasTheDecimalsOfISO4217(t *testing.T) {
	t.Parallel()
	decimals := map[string]int{"CLF": 4, "UYW": 4}
	for code := range strings.FieldsSeq("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF") {
		decimals[code] = 0
	}
	for code := range strings.FieldsSeq("BHD IQD JOD KWD LYD OMR TND") {
		decimals[code] = 3
	}
	codes := currency.GetCurrencyCodes()
	if len(codes) < 150 {
		t.Fatalf("%d currencies", len(codes))
	}
	for _, code := range codes {
		want, known := decimals[code]
		if !known {
			want = 2
		}
		a := money.Amount{Minor: 99950, Currency: code}
		_, fraction, _ := strings.Cut(a.Decimal(), ".")
		if a.Digits() != want || len(fraction) != want {
			t.Errorf("%s has %d decimals and is shown as %q, want %d", code, a.Digits(), a, want)
		}
		if back, err := money.Parse(a.Decimal(), code); err != nil || back != a {
			t.Errorf("%s was read as %v, %v", a, back, err)
		}
		if more, err := money.Parse("1."+strings.Repeat("0", want)+"5", code); err == nil {
			t.Errorf("%s with one decimal more was read as %s", code, more)
		}
	}
	if got := (money.Amount{Minor: 99950, Currency: "HUF"}).String(); got != "HUF 999.50" {
		t.Errorf("%q", got)
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
