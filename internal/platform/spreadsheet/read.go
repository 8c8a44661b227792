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
	separator rune
	line      int  // number of lines that were read
	returned  bool // the last line ended with a carriage return
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
// separators comma, semicolon, tab and bar. Records are lines: no field contains a line
// break.
func NewReader(in io.Reader, known []string, required string) (*Reader, error) {
	r := &Reader{in: decoded(in)}
	text, err := r.next()
	if err == nil && len(text) == len("sep=;") && strings.HasPrefix(text, "sep=") { // as Excel understands it
		text, err = r.next()
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
		columns, err := columnsOf(text, separator, known, required)
		if err == nil {
			r.columns, r.separator = columns, separator
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
	return bufio.NewReaderSize(transform.NewReader(raw, unicodetext.UTF16(order, unicodetext.UseBOM).NewDecoder()), maxLine)
}

var (
	errNotUTF8 = errors.New("the text is neither UTF-8 nor UTF-16: save the file as “CSV UTF-8”")
	errTooLong = errors.New("the line is too long")
)

func columnsOf(text string, separator rune, known []string, required string) (map[string]int, error) {
	header, err := split(text, separator)
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	columns := map[string]int{}
	for n, name := range header {
		name = strings.TrimSpace(name)
		if _, twice := columns[name]; twice || !slices.Contains(known, name) {
			return nil, fmt.Errorf("column %q is not known, or twice there: choose among %s", name, strings.Join(known, ", "))
		}
		columns[name] = n
	}
	if _, ok := columns[required]; !ok {
		return nil, fmt.Errorf("the column %s is missing", required)
	}
	return columns, nil
}

// Next returns the next row that is not blank, and io.EOF after the last one. Another
// error is of the file.
func (r *Reader) Next() (Row, error) {
	for {
		text, err := r.next()
		if errors.Is(err, errTooLong) {
			return Row{Line: r.line, Err: err}, nil
		}
		if err != nil {
			return Row{}, err
		}
		if strings.Trim(text, string(r.separator)+" \t\"") == "" {
			continue // spreadsheets write such rows after the last one
		}
		row := Row{Line: r.line, columns: r.columns}
		row.fields, row.Err = r.record(text)
		return row, nil
	}
}

func (r *Reader) record(text string) ([]string, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
		return nil, errNotUTF8
	}
	fields, err := split(text, r.separator)
	if err != nil {
		return nil, err
	}
	if len(fields) != len(r.columns) {
		return nil, fmt.Errorf("the row has %d fields, the header %d", len(fields), len(r.columns))
	}
	for _, field := range fields {
		if len(field) > maxField {
			return nil, errors.New("a field is too long")
		}
		if strings.ContainsFunc(field, func(c rune) bool { return c != '\t' && unicode.IsControl(c) }) {
			return nil, errors.New("a field has control characters")
		}
	}
	return fields, nil
}

// split returns the fields of a line.
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

// next returns the next line. Lines end with a line feed, a carriage return, or both.
func (r *Reader) next() (string, error) {
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
		r.line++
		if length > maxLine {
			return "", errTooLong
		}
		return string(text), nil
	}
}
