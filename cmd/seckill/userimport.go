package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"seckill/internal/app"
	"seckill/internal/identity/account"
	"seckill/internal/platform/config"
)

// maxProblems bounds the rows that are printed.
const maxProblems = 1000

type userImportCmd struct {
	File   string `arg:"" placeholder:"FILE" help:"CSV with a header: account, and if known displayName, externalId, passwordHash, verified, language, createdAt. - is standard input."`
	DryRun bool   `help:"Check the file and count, without writing."`
}

// Help describes the file.
func (userImportCmd) Help() string {
	return "Creates a customer for each row. Rows whose account or externalId exists are left alone, so that the command can be repeated.\n" +
		"passwordHash is of argon2, bcrypt, or a hasher of Django, and is replaced at the first sign-in; without one, " +
		"the customer resets the password by e-mail.\n\n" + examples(
		"seckill user import --dry-run customers.csv",
		"seckill user import customers.csv",
	)
}

// Run imports the file. Problems and progress go to standard error.
func (u userImportCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase); err != nil {
		return err
	}
	rows, err := u.open(c.env)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // it was only read
	problems := 0
	done, err := app.ImportUsers(c.ctx, c.cfg, account.Import{
		Rows: rows, DryRun: u.DryRun,
		Problem: func(line int, why string) {
			if problems++; problems <= maxProblems {
				fmt.Fprintf(c.env.stderr, "line %d: %s\n", line, why)
			}
		},
		Progress: func(done account.Imported) {
			if done.Rows%10_000 == 0 {
				fmt.Fprintf(c.env.stderr, "%d rows\n", done.Rows)
			}
		},
	})
	if problems > maxProblems {
		fmt.Fprintf(c.env.stderr, "and %d more lines\n", problems-maxProblems)
	}
	verb := "created"
	if u.DryRun {
		verb = "to create"
	}
	fmt.Fprintf(c.env.stdout, "%d rows: %d %s, %d duplicates, %d invalid\n", done.Rows, done.Created, verb,
		done.Duplicates, done.Invalid)
	if err == nil && done.Invalid > 0 {
		err = fmt.Errorf("%d rows are invalid", done.Invalid)
	}
	return err
}

func (u userImportCmd) open(env environment) (io.ReadCloser, error) {
	if u.File != "-" {
		return os.Open(u.File)
	}
	if env.stdin == nil {
		return nil, errors.New("standard input is closed: name a file")
	}
	return io.NopCloser(env.stdin), nil
}
