// Package migrations embeds the versioned SQL of the tables, oldest first by
// file name. The files are made from ent's schema by
//
//	go run ./internal/postgres/migratediff NAME
//
// read, corrected by hand where a change needs more than the difference (filling
// a new column, for example), and never changed once released. The predicate of
// a partial index is put back to the words of the schema: Postgres rewrites it
// each time that it reads it, so its own form would count as a change for ever.
package migrations

import "embed"

// Files holds the SQL files, in goose's format.
//
//go:embed *.sql
var Files embed.FS
