package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ariga.io/atlas/sql/sqltool"

	"seckill/internal/testdb"
)

const (
	committed  = "../../../../migrations"
	schemaPath = "../../../../ent/schema"
)

// copyOf returns a copy of the committed files that a test may change.
func copyOf(t *testing.T) *sqltool.GooseDir {
	t.Helper()
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS(committed)); err != nil {
		t.Fatal(err)
	}
	dir, err := sqltool.NewGooseDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func sqlFiles(t *testing.T, dir *sqltool.GooseDir) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir.Path(), "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestADatabaseMigratedByTheFilesEqualsTheSchema(t *testing.T) {
	dir := copyOf(t)
	before := len(sqlFiles(t, dir))
	if err := diff(t.Context(), testdb.EmptyPostgresURL(t), schemaPath, dir, "missing"); err != nil {
		t.Fatal(err) // a changed file is an error too: its checksum differs
	}
	after := sqlFiles(t, dir)
	if len(after) == before {
		return
	}
	missing, err := os.ReadFile(after[len(after)-1])
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("ent's schema is ahead of the migrations; `make migration NAME=…` writes:\n%s", missing)
}

func TestWhatIsMissingIsWritten(t *testing.T) {
	dir, err := sqltool.NewGooseDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := diff(t.Context(), testdb.EmptyPostgresURL(t), schemaPath, dir, "all"); err != nil {
		t.Fatal(err)
	}
	files := sqlFiles(t, dir)
	if len(files) != 1 {
		t.Fatalf("files: %v, want one", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), `CREATE TABLE "sale_items"`) {
		t.Errorf("%v, and the file is\n%s", err, text)
	}
}
