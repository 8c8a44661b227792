package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"seckill/internal/app"
	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// listedUsers is the length of the pages in which users are read.
const listedUsers = 200

// named identifies the user that a command changes.
type named struct {
	Account string `required:"" placeholder:"ACCOUNT" help:"The user's e-mail address, or phone number, with its country code unless the installation has a country."`
}

func (n named) change(c *call, fn func(app.Users, *account.User) error) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	return app.ChangeUsers(c.ctx, c.cfg, c.logger(), func(users app.Users) error {
		u, err := users.Admin.ByAccount(c.ctx, n.Account)
		if err != nil {
			return err
		}
		if u == nil {
			return fmt.Errorf("--account %s: there is no such user", n.Account)
		}
		return fn(users, u)
	})
}

type userListCmd struct {
	Search string `aliases:"prefix" placeholder:"TEXT" help:"Only users whose account begins with this, or whose name has it."`
}

// Run prints users, newest first.
func (l userListCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	return app.ChangeUsers(c.ctx, c.cfg, c.logger(), func(users app.Users) error {
		w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
		for in := (account.ListInput{Search: l.Search, Limit: listedUsers}); ; {
			page, err := users.Admin.List(c.ctx, in)
			if err != nil {
				return err
			}
			for _, u := range page.Users {
				state := "active"
				if u.Disabled {
					state = "disabled"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", u.ID.Public(), u.Role, state, u.CreatedAt.Format(time.RFC3339), u.Account)
				in.After = u.ID
			}
			if err := w.Flush(); err != nil || !page.HasNext {
				return err
			}
		}
	})
}

type userRoleCmd struct {
	named
	Role string `required:"" placeholder:"ROLE" help:"customer, operator or admin."`
}

func (r userRoleCmd) Run(c *call) error {
	if !slices.Contains(accountRoles, strings.ToLower(r.Role)) {
		return fmt.Errorf("--role %q is no role: choose from %s", r.Role, strings.Join(accountRoles, ", "))
	}
	return r.change(c, func(users app.Users, u *account.User) error {
		_, err := users.Admin.SetRole(c.ctx, id.User{}, u.ID, auth.Role(strings.ToUpper(r.Role)))
		return err
	})
}

type userDisableCmd struct {
	named
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the security log."`
}

func (d userDisableCmd) Run(c *call) error {
	return d.change(c, func(users app.Users, u *account.User) error {
		_, err := users.Admin.Disable(c.ctx, id.User{}, u.ID, d.Reason)
		return err
	})
}

type userEnableCmd struct{ named }

// Run enables sign-in for the user again.
func (e userEnableCmd) Run(c *call) error {
	return e.change(c, func(users app.Users, u *account.User) error {
		_, err := users.Admin.Enable(c.ctx, id.User{}, u.ID)
		return err
	})
}

type userSessionsCmd struct{ named }

func (e userSessionsCmd) Run(c *call) error {
	return e.change(c, func(users app.Users, u *account.User) error {
		_, err := users.Admin.EndSessions(c.ctx, id.User{}, u.ID)
		return err
	})
}

type userTOTPCmd struct{ named }

func (t userTOTPCmd) Run(c *call) error {
	return t.change(c, func(users app.Users, u *account.User) error {
		return users.Admin.ResetTOTP(c.ctx, id.User{},
			u.ID)
	})
}

type userPasswordCmd struct{ named }

// Help describes how the password is read.
func (userPasswordCmd) Help() string {
	return "Asks for the password on a terminal; otherwise reads the first line of standard input. Ends the user's sessions."
}

func (p userPasswordCmd) Run(c *call) error {
	password, err := userCreateCmd{}.password(c.env)
	if err != nil {
		return err
	}
	return p.change(c, func(users app.Users, u *account.User) error {
		err := users.Admin.SetPassword(c.ctx, id.User{}, u, password)
		if bad, ok := errors.AsType[fault.BadField](err); ok {
			return fmt.Errorf("the password was not changed: %s", bad.Rule)
		}
		return err
	})
}

type userLogCmd struct {
	Since time.Duration `default:"24h" help:"How far back."`
}

// Run prints the security log, newest first.
func (l userLogCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	return app.ChangeUsers(c.ctx, c.cfg, c.logger(), func(users app.Users) error {
		events, err := users.Security.Since(c.ctx, time.Now().Add(-l.Since), id.User{})
		if err != nil {
			return err
		}
		name := func(u id.User) string {
			if u.IsZero() {
				return "-"
			}
			return u.Public()
		}
		w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
		for _, e := range events {
			address := "-"
			if e.Addr.IsValid() {
				address = e.Addr.String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%q\n", e.At.Format(time.RFC3339), e.Kind, name(e.Actor), name(e.Subject),
				address, e.Detail)
		}
		if len(events) == account.MaxLogged {
			fmt.Fprintf(c.env.stderr, "only the newest %d entries: choose a shorter --since for all of a time\n",
				account.MaxLogged)
		}
		return w.Flush()
	})
}

var accountRoles = []string{"customer", "operator", "admin"}

type userCmd struct {
	Create   userCreateCmd   `cmd:"" help:"Make an account, for example the first administrator."`
	Import   userImportCmd   `cmd:"" help:"Create customers from a CSV file, with hashed passwords or none."`
	List     userListCmd     `cmd:"" help:"List users, newest first, at most 200."`
	Role     userRoleCmd     `cmd:"" help:"Change the role of a user; ends the user's sessions."`
	Password userPasswordCmd `cmd:"" help:"Change the password of a user; ends the user's sessions."`
	Disable  userDisableCmd  `cmd:"" help:"Keep a user from signing in; ends the user's sessions."`
	Enable   userEnableCmd   `cmd:"" help:"Let a disabled user sign in again."`
	Sessions userSessionsCmd `cmd:"" name:"end-sessions" help:"End the sessions of a user, with tokens and sockets."`
	Totp     userTOTPCmd     `cmd:"" name:"reset-totp" help:"Make sign-in of a user who lost the device need no one-time code; ends the user's sessions."`
	Log      userLogCmd      `cmd:"" help:"Print the security log, newest first, at most 1,000 lines."`
}

type userCreateCmd struct {
	Account  string `required:"" placeholder:"ACCOUNT" help:"What to sign in with: an e-mail address, or a phone number, with its country code unless the installation has a country."`
	Role     string `default:"CUSTOMER" placeholder:"ROLE" help:"customer, operator or admin."`
	Name     string `help:"Name to show; without it, the part of the account before the @."`
	Password string `placeholder:"PASSWORD" help:"Its password. Others on this machine can see flags: better let it be asked for, or send it on standard input."`
}

func (userCreateCmd) Help() string {
	return "Asks for the password on a terminal; otherwise reads the first line of standard input.\n\n" + examples(
		"seckill user create --account admin@example.com --role admin",
		"printf '%s\\n' \"$PASSWORD\" | seckill user create --account ops@example.com --role operator",
	)
}

func (u userCreateCmd) Run(c *call) error {
	if !slices.Contains(accountRoles, strings.ToLower(u.Role)) {
		return fmt.Errorf("--role %q is no role: choose from %s", u.Role, strings.Join(accountRoles, ", "))
	}
	if err := c.cfg.Validate(config.NeedDatabase); err != nil {
		return err
	}
	password, err := u.password(c.env)
	if err != nil {
		return err
	}
	name := u.Name
	if name == "" {
		name, _, _ = strings.Cut(u.Account, "@")
	}
	created, err := app.CreateUser(c.ctx, c.cfg, app.NewUser{
		Account: u.Account, Role: strings.ToUpper(u.Role), DisplayName: name, Password: password,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.env.stdout, "%s %s\n", created, strings.ToUpper(u.Role))
	return err
}

func (u userCreateCmd) password(env environment) (string, error) {
	switch {
	case u.Password != "":
		return u.Password, nil
	case env.stdin != nil && term.IsTerminal(int(env.stdin.Fd())):
		return ask(env.stdin, env.stderr)
	case env.stdin == nil:
		return "", errors.New("no password: send it on standard input, or give --password")
	}
	line, err := bufio.NewReader(io.LimitReader(env.stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("no password: send it on standard input, or give --password")
	}
	return line, nil
}

// ask reads a password twice without echo.
func ask(in *os.File, out io.Writer) (string, error) {
	var answers [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(out, prompt)
		answer, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(out)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		answers[i] = string(answer)
	}
	if answers[0] != answers[1] {
		return "", errors.New("the two passwords differ")
	}
	return answers[0], nil
}

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
