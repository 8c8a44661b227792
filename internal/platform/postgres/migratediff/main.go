// Command migratediff writes the next file of migrations/: the changes after which a
// database migrated by the files equals ent's schema.
//
//	go run ./internal/platform/postgres/migratediff add_waiting_room
//
// It needs the Postgres of `make services`, where it creates a temporary database and
// drops it again. migrations/atlas.sum protects the files against accidental changes;
// after a manual correction, `go run ./internal/platform/postgres/migratediff -rehash` updates
// it.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
	_ "github.com/lib/pq"
)

const (
	directory   = "migrations"
	schemaDir   = "ent/schema"
	urlVariable = "SECKILL_TEST_DATABASE_URL"
)

var nameFormat = regexp.MustCompile(`^[a-z][a-z0-9_]{2,48}$`)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Getenv(urlVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "migratediff:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, serverURL string) error {
	dir, err := sqltool.NewGooseDir(directory)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] == "-rehash" {
		return rehash(dir)
	}
	if len(args) != 1 || !nameFormat.MatchString(args[0]) {
		return errors.New("want one argument: what the change does, in snake_case")
	}
	if serverURL == "" {
		return errors.New(urlVariable + " is not set; use `make migration NAME=…`, which starts Postgres")
	}
	return inScratch(ctx, serverURL, func(scratchURL string) error {
		return diff(ctx, scratchURL, "./"+schemaDir, dir, args[0])
	})
}

// diff applies the files of dir to the empty database at scratchURL, compares the
// tables with the ent schema in schemaPath, and writes the next file when they differ.
func diff(ctx context.Context, scratchURL, schemaPath string, dir *sqltool.GooseDir, name string) error {
	graph, err := entc.LoadGraph(schemaPath, &gen.Config{})
	if err != nil {
		return err
	}
	tables, err := graph.Tables()
	if err != nil {
		return err
	}
	pool, err := sql.Open("postgres", scratchURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	migration, err := schema.NewMigrate(entsql.OpenDB(dialect.Postgres, pool),
		schema.WithDir(dir), schema.WithFormatter(sqltool.GooseFormatter),
		schema.WithMigrationMode(schema.ModeReplay), schema.WithDialect(dialect.Postgres),
		schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		return err
	}
	return migration.NamedDiff(ctx, name, tables...)
}

func rehash(dir *sqltool.GooseDir) error {
	sum, err := dir.Checksum()
	if err != nil {
		return err
	}
	return atlas.WriteSumFile(dir, sum)
}

// inScratch calls do with the URL of an empty database and drops it afterwards.
func inScratch(ctx context.Context, serverURL string, do func(scratchURL string) error) (err error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return fmt.Errorf("%s: %w", urlVariable, err)
	}
	server, err := sql.Open("postgres", serverURL)
	if err != nil {
		return err
	}
	defer server.Close()
	name := "migratediff_" + rand.Text()[:8]
	if _, err := server.ExecContext(ctx, `CREATE DATABASE "`+name+`"`); err != nil {
		return err
	}
	defer func() {
		_, dropErr := server.ExecContext(ctx, `DROP DATABASE "`+name+`" WITH (FORCE)`)
		err = errors.Join(err, dropErr)
	}()
	u.Path = "/" + name
	return do(u.String())
}
