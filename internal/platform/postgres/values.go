package postgres

import (
	"context"
	"database/sql"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Array returns an array literal with one value of each row: a statement whose text does not
// depend on the number of rows takes its columns as arrays.
func Array[T any](rows []T, value func(dst []byte, row T) []byte) string {
	dst := append(make([]byte, 0, 37*len(rows)+1), '{')
	for i, row := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(dst, row)
	}
	return string(append(dst, '}'))
}

// AppendUUID appends the 36-character text of an id.
func AppendUUID[T ~[16]byte](dst []byte, u T) []byte {
	const digits = "0123456789abcdef"
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[b>>4], digits[b&0xf])
	}
	return dst
}

// AppendTime appends a time as an element of an array literal.
func AppendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999Z")
}

// AppendText appends a text as an element of an array literal.
func AppendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// Value returns the value of a nullable column; that of NULL is the zero value.
func Value[T any](column *T) (value T) {
	if column != nil {
		value = *column
	}
	return value
}

// Insert runs an INSERT … ON CONFLICT, for which ent would generate as much code for every table
// as for all else. The statement is that of Postgres, which SQLite understands.
func Insert(ctx context.Context, tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, insert *entsql.InsertBuilder) error {
	insert.SetDialect(dialect.Postgres)
	query, args := insert.Query()
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}
