package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

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
