// Package money holds exact amounts: an integer of minor units and a currency. It uses
// no floats. It is the one source of how many decimals a currency has: those of ISO 4217, in
// which providers charge. It does not convert currencies, and knows neither prices nor payments.
package money

import (
	"fmt"
	"strconv"

	"github.com/bojanz/currency"
)

// NoCurrency is the code of ISO 4217 for records without money.
const NoCurrency = "XXX"

// Amount is an exact amount: Minor units (cents, fen) of an ISO 4217 Currency.
type Amount struct {
	Minor    int64
	Currency string
}

// Decimal returns the amount in major units, for example "1299.00".
func (a Amount) Decimal() string {
	m, err := currency.NewAmountFromInt64(a.Minor, a.Currency)
	if err != nil { // the currency was validated when it was stored
		return strconv.FormatInt(a.Minor, 10)
	}
	return m.Number()
}

// Digits returns the number of decimals of the currency; 0 for NoCurrency.
func (a Amount) Digits() int {
	digits, _ := currency.GetDigits(a.Currency)
	return int(digits)
}

// String returns the amount with its currency, for example "HUF 999.50".
func (a Amount) String() string { return a.Currency + " " + a.Decimal() }

// Times returns the amount multiplied by n.
func (a Amount) Times(n int) Amount { return Amount{Minor: a.Minor * int64(n), Currency: a.Currency} }

// Parse parses a decimal number of major units. The error gives the reason: not a
// number, more decimals than the currency has, negative, or too large.
func Parse(decimal, code string) (Amount, error) {
	m, err := currency.NewAmount(decimal, code)
	if err != nil {
		return Amount{}, fmt.Errorf("read amount: %w", err)
	}
	if m.IsNegative() {
		return Amount{}, fmt.Errorf("read amount: %s is negative", decimal)
	}
	minor, err := m.Int64()
	if err != nil {
		return Amount{}, fmt.Errorf("read amount: %w", err)
	}
	if back, err := currency.NewAmountFromInt64(minor, code); err != nil || !back.Equal(m) {
		return Amount{}, fmt.Errorf("read amount: %s has more decimals than %s", decimal, code)
	}
	return Amount{Minor: minor, Currency: code}, nil
}
