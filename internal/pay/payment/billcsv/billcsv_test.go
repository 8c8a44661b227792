package billcsv_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/pay/payment/billcsv"
)

func TestATableIsFoundByItsTitlesAndEndsWithTheTotals(t *testing.T) {
	t.Parallel()
	const text = "#comment\n\ufeffnew, b ,a\n`1,`x ,2\t\n\n9,8,7\n"
	var got []string
	err := billcsv.Read(strings.NewReader(text), []string{"a", "b"}, func(row billcsv.Row) error {
		got = append(got, row["a"]+row["b"])
		return nil
	})
	if err != nil || strings.Join(got, " ") != "2x" {
		t.Errorf("rows %q, %v", got, err)
	}
	if err := billcsv.Read(strings.NewReader("<html>"), []string{"a"}, nil); !errors.Is(err, billcsv.ErrNoTable) {
		t.Errorf("another file: %v", err)
	}
}

func TestAmountsOfABillAreExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"699.00": 69900, "-0.10": 10, "0.00": 0} {
		if got, err := billcsv.Yuan(text); err != nil || got.Minor != want {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]int64{"4.19400": 419, "0.005": 1, "0": 0} {
		if got, err := billcsv.Fee(text); err != nil || got.Minor != want {
			t.Errorf("a fee of %s is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "1e30"} {
		if got, err := billcsv.Fee(text); err == nil {
			t.Errorf("a fee of %q is %+v", text, got)
		}
	}
}

func TestNumbersOfOtherSoftwareAreNotOurs(t *testing.T) {
	t.Parallel()
	ours := uuid.New()
	for text, want := range map[string]uuid.UUID{strings.ReplaceAll(ours.String(), "-", ""): ours, ours.String(): uuid.Nil, "shop-7": uuid.Nil, "": uuid.Nil} {
		if got := billcsv.Number[uuid.UUID](text); got != want {
			t.Errorf("%q is %s", text, got)
		}
	}
}
