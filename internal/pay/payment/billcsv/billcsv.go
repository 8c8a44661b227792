// Package billcsv reads the bills of payment providers: tables of comma-separated values whose
// columns are found by their titles, because providers add columns. It does not own what the
// columns of a provider mean.
package billcsv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"seckill/internal/platform/money"
)

// ErrNoTable reports that a file has no line with the titles.
var ErrNoTable = errors.New("no table in the bill")

// maxLine bounds a line of a bill, in bytes.
const maxLine = 64 << 10

// Row is a line of a table: its fields by title.
type Row map[string]string

// Read calls a function for each row of the table that begins with the line of titles, and ends
// with the first line that has fewer fields. The bill may have other lines before and after.
// Fields have no quotes; surrounding spaces and the leading ` of WeChat Pay are removed.
func Read(from io.Reader, titles []string, each func(Row) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	var columns []string
	for lines.Scan() {
		fields := split(lines.Text())
		if columns == nil {
			if !slices.ContainsFunc(titles, func(title string) bool { return !slices.Contains(fields, title) }) {
				columns = fields
			}
			continue
		}
		if len(fields) < len(columns) {
			return nil // the totals
		}
		row := make(Row, len(columns))
		for i, column := range columns {
			row[column] = fields[i]
		}
		if err := each(row); err != nil {
			return err
		}
	}
	switch {
	case lines.Err() != nil:
		return fmt.Errorf("read bill: %w", lines.Err())
	case columns == nil:
		return fmt.Errorf("%w: no columns %q", ErrNoTable, titles)
	}
	return nil
}

func split(line string) []string {
	fields := strings.Split(strings.TrimPrefix(line, "\ufeff"), ",")
	for i, f := range fields {
		fields[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(f), "`"))
	}
	return fields
}

// Yuan parses an amount in yuan, whatever its sign: bills differ in the sign of refunds.
func Yuan(text string) (money.Amount, error) {
	amount, err := money.Parse(strings.TrimLeft(text, "+-"), "CNY")
	if err != nil {
		return money.Amount{}, fmt.Errorf("amount %q of a bill: %w", text, err)
	}
	return amount, nil
}

// Fee parses a fee in yuan. Bills have more digits than a cent has; they are rounded, because
// the fee is booked in cents.
func Fee(text string) (money.Amount, error) {
	yuan, err := strconv.ParseFloat(text, 64)
	if err != nil || !(yuan >= 0 && yuan <= 1e9) { // NaN is neither
		return money.Amount{}, fmt.Errorf("fee %q of a bill", text)
	}
	return money.Amount{Minor: int64(math.Round(yuan * 100)), Currency: "CNY"}, nil
}

// Number returns the id that a number of the merchant stands for: 32 hexadecimal digits. Other
// numbers are not the shop's, and give the zero id.
func Number[T ~[16]byte](text string) T {
	u, err := uuid.Parse(text)
	if err != nil || len(text) != 32 {
		return T{}
	}
	return T(u)
}
