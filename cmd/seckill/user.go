package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"seckill/internal/app"
	"seckill/internal/platform/config"
)

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
