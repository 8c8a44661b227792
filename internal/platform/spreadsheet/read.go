package spreadsheet

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	unicodetext "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Bounds of a file.
const (
	maxLine  = 64 << 10 // of a line, in bytes
	maxField = 1024     // of a field, in bytes
)

// separators are those of spreadsheets; which one depends on the language of the machine.
var separators = []rune{',', ';', '\t', '|'}

// Reader reads a table with a header, row by row. A row that cannot be read does not end
// the table.
type Reader struct {
	in        *bufio.Reader
	columns   map[string]int
	width     int // number of columns, those without a name included
	separator rune
	ahead     []line // lines that were read and belong to later rows
	lines     int    // number of lines that were read
	returned  bool   // the last line ended with a carriage return
}

type line struct {
	number int // from 1
	text   string
	err    error
}

// Row is a row of a table.
type Row struct {
	Line    int   // from 1, of the file
	Err     error // why the row cannot be read; nil = it was read
	fields  []string
	columns map[string]int
}

// Field returns the text in a column, without blanks around it and without the apostrophe
// of Safe; "" = none.
func (r Row) Field(column string) string {
	if n, ok := r.columns[column]; ok {
		return Plain(strings.TrimSpace(r.fields[n]))
	}
	return ""
}

// NewReader reads the header of a table whose columns are among known and include
// required. It recognises UTF-8 and UTF-16, with or without a byte order mark, and the
// separators comma, semicolon, tab and bar. Columns without a name are left out.
func NewReader(in io.Reader, known []string, required string) (*Reader, error) {
	r := &Reader{in: decoded(in)}
	text, err := r.read()
	if err == nil && len(text) == len("sep=;") && strings.HasPrefix(text, "sep=") { // as Excel understands it
		text, err = r.read()
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("read the header: the file is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	if !utf8.ValidString(text) {
		return nil, errNotUTF8
	}
	var first error
	for _, separator := range separators {
		columns, width, err := columnsOf(text, separator, known, required)
		if err == nil {
			r.columns, r.width, r.separator = columns, width, separator
			return r, nil
		}
		if first == nil || strings.ContainsRune(text, separator) && !strings.ContainsRune(text, separators[0]) {
			first = err
		}
	}
	return nil, first
}

// decoded returns the text of a file in UTF-8. Invalid bytes of UTF-8 stay.
func decoded(in io.Reader) *bufio.Reader {
	raw := bufio.NewReaderSize(in, maxLine)
	head, _ := raw.Peek(2) // a shorter file is not of UTF-16
	order := unicodetext.LittleEndian
	switch {
	case len(head) < 2:
		return raw
	case head[0] == 0xfe && head[1] == 0xff, head[0] == 0 && head[1] != 0:
		order = unicodetext.BigEndian
	case head[0] == 0xff && head[1] == 0xfe, head[0] != 0 && head[1] == 0:
	default:
		if start, _ := raw.Peek(len(mark)); string(start) == mark {
			_, _ = raw.Discard(len(mark)) // it is buffered
		}
		return raw
	}
	return bufio.NewReaderSize(transform.NewReader(raw, unicodetext.UTF16(order, unicodetext.UseBOM).NewDecoder()),
		maxLine)
}

var (
	errNotUTF8 = errors.New("the text is neither UTF-8 nor UTF-16: save the file as “CSV UTF-8”")
	errTooLong = errors.New("the line is too long")
)

// columnsOf returns the columns of a header by name, and the number of all columns.
func columnsOf(text string, separator rune, known []string, required string) (columns map[string]int, width int,
	err error) {
	header, err := split(text, separator)
	if err != nil {
		return nil, 0, fmt.Errorf("read the header: %w", err)
	}
	columns = map[string]int{}
	for n, name := range header {
		if name = strings.TrimSpace(name); name == "" {
			continue // spreadsheets write columns that were in use
		}
		if _, twice := columns[name]; twice || !slices.Contains(known, name) {
			return nil, 0, fmt.Errorf("column %q is not known, or twice there: choose among %s", name, strings.Join(known, ", "))
		}
		columns[name] = n
	}
	if _, ok := columns[required]; !ok {
		return nil, 0, fmt.Errorf("the column %s is missing", required)
	}
	return columns, len(header), nil
}

// Next returns the next row that is not blank, and io.EOF after the last one. Another
// error is of the file.
func (r *Reader) Next() (Row, error) {
	for {
		l := r.next()
		if errors.Is(l.err, errTooLong) {
			return Row{Line: l.number, Err: l.err}, nil
		}
		if l.err != nil {
			return Row{}, l.err
		}
		text := r.whole(l.text)
		if strings.Trim(text, string(r.separator)+" \t\"") == "" {
			continue // spreadsheets write such rows after the last one
		}
		row := Row{Line: l.number, columns: r.columns}
		row.fields, row.Err = r.record(text)
		return row, nil
	}
}

// whole returns the text of a row that begins with a line: that line, and if it leaves a
// quote open, the lines until one that closes it. If they are no row, the quote is a fault
// of its own line, and the others are rows.
func (r *Reader) whole(text string) string {
	quotes := strings.Count(text, `"`)
	if quotes%2 == 0 {
		return text
	}
	all := []byte(text)
	for n := 0; quotes%2 == 1 && len(all) <= maxLine; n++ {
		if n == len(r.ahead) {
			next, err := r.read()
			r.ahead = append(r.ahead, line{r.lines, next, err})
		}
		if r.ahead[n].err != nil {
			return text
		}
		all = append(append(all, '\n'), r.ahead[n].text...)
		quotes += strings.Count(r.ahead[n].text, `"`)
		if quotes%2 == 1 {
			continue
		}
		if _, err := r.record(string(all)); err == nil {
			r.ahead = r.ahead[n+1:]
			return string(all)
		}
	}
	return text
}

func (r *Reader) record(text string) ([]string, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
		return nil, errNotUTF8
	}
	fields, err := split(text, r.separator)
	if err != nil {
		return nil, err
	}
	if len(fields) != r.width {
		return nil, fmt.Errorf("the row has %d fields, the header %d", len(fields), r.width)
	}
	for _, field := range fields {
		if len(field) > maxField {
			return nil, errors.New("a field is too long")
		}
		if strings.ContainsFunc(field, func(c rune) bool { return c != '\t' && c != '\n' && unicode.IsControl(c) }) {
			return nil, errors.New("a field has control characters")
		}
	}
	return fields, nil
}

// split returns the fields of a row.
func split(text string, separator rune) ([]string, error) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, string(separator)), nil
	}
	rows := csv.NewReader(strings.NewReader(text))
	rows.Comma, rows.FieldsPerRecord = separator, -1
	fields, err := rows.Read()
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		return nil, fmt.Errorf("character %d: %w", parse.Column, parse.Err)
	}
	return fields, err
}

// next returns the next line that belongs to no row yet.
func (r *Reader) next() line {
	if len(r.ahead) > 0 {
		l := r.ahead[0]
		r.ahead = r.ahead[1:]
		return l
	}
	text, err := r.read()
	return line{r.lines, text, err}
}

// read reads a line. Lines end with a line feed, a carriage return, or both.
func (r *Reader) read() (string, error) {
	var text []byte
	for length := 0; ; {
		c, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && length > 0:
			c = '\n'
		case err != nil:
			return "", err
		case c == '\n' && r.returned:
			r.returned = false // the second of the two characters of an end
			continue
		}
		r.returned = c == '\r'
		if c != '\n' && c != '\r' {
			if length++; length <= maxLine {
				text = append(text, c)
			}
			continue
		}
		r.lines++
		if length > maxLine {
			return "", errTooLong
		}
		return string(text), nil
	}
}
