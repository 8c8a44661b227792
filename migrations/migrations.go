// Package migrations embeds the versioned SQL migrations, oldest first by file name. The
// files are generated from ent's schema by
//
//	go run ./internal/platform/postgres/migratediff NAME
//
// then reviewed, corrected by hand where a change needs more than the difference (filling
// a new column, for example), and never changed once released. The predicate of a partial
// index keeps the text of the schema: Postgres normalises it on each read, so its form
// would show up as a change every time.
package migrations

import "embed"

// Files holds the SQL files, in goose's format.
//
//go:embed *.sql
var Files embed.FS
