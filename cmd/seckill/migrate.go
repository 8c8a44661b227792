package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"seckill/internal/ops/doctor"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply the migrations that are missing."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations; exit 1 when one is missing."`
}

type migrateUpCmd struct{}

func (migrateUpCmd) Help() string {
	return "Safe to run by several processes at once, and again.\n\n" +
		examples("SECKILL_DATABASE_URL='postgres://user:password@host/seckill?sslmode=require' seckill migrate up")
}

func (migrateUpCmd) Run(c *call) error {
	return c.withDatabase(func(db *postgres.DB) error {
		applied, err := db.Migrate(c.ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.env.stdout, "applied %d migrations\n", applied)
		return err
	})
}

type migrateStatusCmd struct {
	JSON bool `help:"Print JSON."`
}

func (migrateStatusCmd) Help() string {
	return examples("seckill migrate status", "seckill migrate status --json")
}

func (m migrateStatusCmd) Run(c *call) error {
	return c.withDatabase(func(db *postgres.DB) error {
		all, err := db.MigrationStatus(c.ctx)
		if err != nil {
			return err
		}
		if err := printMigrations(c.env.stdout, all, m.JSON); err != nil {
			return err
		}
		for _, migration := range all {
			if !migration.Applied {
				return errFinding
			}
		}
		return nil
	})
}

func printMigrations(out io.Writer, all []postgres.Migration, asJSON bool) error {
	if asJSON {
		type line struct {
			Version   int64     `json:"version"`
			Name      string    `json:"name"`
			Applied   bool      `json:"applied"`
			AppliedAt time.Time `json:"appliedAt,omitzero"`
		}
		lines := collect.Map(all, func(m postgres.Migration) line { return line(m) })
		return printJSON(out, lines)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range all {
		state := "missing"
		if m.Applied {
			state = "applied " + m.AppliedAt.UTC().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\n", m.Name, state)
	}
	return w.Flush()
}

func (c *call) withDatabase(do func(*postgres.DB) error) error {
	if err := c.cfg.Validate(config.NeedDatabase); err != nil {
		return err
	}
	db, err := postgres.Open(c.ctx, postgres.Options{
		URL: c.cfg.DatabaseURL.Reveal(), MaxConns: c.cfg.DatabasePool,
		TransactionPooling: c.cfg.DatabasePooling == config.PoolingTransaction,
	})
	if err != nil {
		return doctor.PostgresAway(c.cfg, err)
	}
	defer func() { _ = db.Close() }() // all writes are committed
	return do(db)
}

func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
