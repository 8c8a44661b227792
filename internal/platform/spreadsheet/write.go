package spreadsheet

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// mark is the byte order mark of UTF-8, without which Excel reads a file in the code page
// of the machine.
const mark = "\ufeff"

// NewWriter returns a writer of RFC 4180 in UTF-8 with a byte order mark, which it writes.
func NewWriter(out io.Writer) (*csv.Writer, error) {
	if _, err := io.WriteString(out, mark); err != nil {
		return nil, fmt.Errorf("write byte order mark: %w", err)
	}
	w := csv.NewWriter(out)
	w.UseCRLF = true
	return w, nil
}

// formulaSigns begin a formula, also in their wide forms and after blanks. Tab and line
// feed are among them, because spreadsheets drop them (OWASP, CSV injection).
const formulaSigns = "=+-@＝＋－＠\t\r\n"

// isFormula reports whether a spreadsheet would read a text as a formula, or would after
// apostrophes are taken off.
func isFormula(text string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "' \u00a0\u3000"+mark))
	return strings.ContainsRune(formulaSigns, first)
}

// Safe returns a text that a spreadsheet reads as text: before what it would read as a
// formula, an apostrophe.
func Safe(text string) string {
	if isFormula(text) {
		return "'" + text
	}
	return text
}

// Plain takes off the apostrophe of Safe.
func Plain(text string) string {
	if rest, ok := strings.CutPrefix(text, "'"); ok && isFormula(rest) {
		return rest
	}
	return text
}
