package migrations_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"seckill/migrations"
)

// lastLocking is the last file that may build an index of an existing table under a lock:
// the tables were small then.
const lastLocking = "20261123145800"

var (
	createTable = regexp.MustCompile(`(?i)CREATE TABLE "(\w+)"`)
	createIndex = regexp.MustCompile(`(?i)CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?.* ON "(\w+)"`)
)

// locking returns the tables whose writers wait while a migration builds an index.
func locking(text string) (tables []string) {
	created := map[string]bool{}
	for _, m := range createTable.FindAllStringSubmatch(text, -1) {
		created[m[1]] = true
	}
	for _, m := range createIndex.FindAllStringSubmatch(text, -1) {
		if m[1] == "" && !created[m[2]] {
			tables = append(tables, m[2])
		}
	}
	return tables
}

func TestIndexesOfExistingTablesAreBuiltConcurrently(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	found := 0
	for _, name := range names {
		text, err := migrations.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tables := locking(string(text))
		found += len(tables)
		if name > lastLocking+"~" && len(tables) > 0 {
			t.Errorf("%s: writers of %v wait while an index is built: write CREATE INDEX CONCURRENTLY in a file of its own, with -- +goose NO TRANSACTION", name, tables)
		}
		if strings.Contains(string(text), "CONCURRENTLY") && !strings.Contains(string(text), "+goose NO TRANSACTION") {
			t.Errorf("%s: CONCURRENTLY is impossible in a transaction: add -- +goose NO TRANSACTION", name)
		}
	}
	if found == 0 {
		t.Error("no index of an existing table in the first files: the test recognises none")
	}
}
