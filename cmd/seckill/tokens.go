package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"seckill/internal/app"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a service token, and print it."`
	List   tokenListCmd   `cmd:"" help:"List the service tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a service token within a second."`
}

func (tokenCmd) Help() string {
	return "Scopes: " + scopeNames(auth.Scopes()) + ". docs/service-tokens.md says what they permit.\n\n" + examples(
		"seckill token create --name ERP --scopes orders:read,events:read --days 90",
		"seckill token revoke svt_01jd8z3q4vftn8r2m5w6x7y8z9",
	)
}

// changeTokens runs fn on the service tokens of the installation.
func changeTokens(c *call, fn func(*servicetoken.Service) error) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	return app.ChangeUsers(c.ctx, c.cfg, c.logger(), func(users app.Users) error { return fn(users.Tokens) })
}

func scopeNames(scopes []auth.Scope) string {
	names := collect.Map(scopes, func(s auth.Scope) string { return s.String() })
	return strings.Join(names, ",")
}

type tokenCreateCmd struct {
	Name   string   `required:"" placeholder:"TEXT" help:"What it is for."`
	Scopes []string `required:"" placeholder:"SCOPE" help:"What it may do, comma separated: catalogue:read,orders:read."`
	Days   int      `default:"90" help:"After how many days it ends, 1 to 366."`
}

func (t tokenCreateCmd) Run(c *call) error {
	in := servicetoken.Input{Name: t.Name, Life: time.Duration(t.Days) * 24 * time.Hour}
	if t.Days < 1 || in.Life > servicetoken.MaxLife {
		return fmt.Errorf("--days %d: choose 1 to 366", t.Days)
	}
	for _, name := range t.Scopes {
		scope, ok := auth.ParseScope(name)
		if !ok {
			return fmt.Errorf("--scopes %q: choose from %s", name, scopeNames(auth.Scopes()))
		}
		in.Scopes = append(in.Scopes, scope)
	}
	return changeTokens(c, func(tokens *servicetoken.Service) error {
		made, secret, err := tokens.Create(c.ctx, id.User{}, in)
		if fault.ReasonOf(err) == fault.Conflict {
			return errors.New("there are 100 service tokens: revoke one first")
		}
		if bad, ok := errors.AsType[fault.BadField](err); ok && len(bad.At) == 1 {
			return fmt.Errorf("--%s: needs %s", bad.At[0], bad.Rule)
		}
		if err == nil {
			fmt.Fprintf(c.env.stdout, "%s\n%s\n", made.ID.Public(), secret)
		}
		return err
	})
}

type tokenListCmd struct{}

// Run prints the tokens, oldest first.
func (tokenListCmd) Run(c *call) error {
	return changeTokens(c, func(tokens *servicetoken.Service) error {
		list, err := tokens.List(c.ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
		for _, t := range list {
			used := "never used"
			if t.LastUsedAt != nil {
				used = "used " + t.LastUsedAt.Format(time.RFC3339)
			}
			ends := "ends "
			if t.ExpiresAt.Before(time.Now()) {
				ends = "ended "
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.ID.Public(), t.Name, scopeNames(t.Scopes), ends+
				t.ExpiresAt.Format(time.RFC3339), used)
		}
		return w.Flush()
	})
}

type tokenRevokeCmd struct {
	ID string `arg:"" name:"id" help:"Id of the service token."`
}

func (r tokenRevokeCmd) Run(c *call) error {
	token, err := parsed[id.ServiceToken](id.KindServiceToken, r.ID)
	if err != nil {
		return err
	}
	return changeTokens(c, func(tokens *servicetoken.Service) error {
		_, err := tokens.Revoke(c.ctx, id.User{}, token)
		if fault.ReasonOf(err) == fault.Unknown {
			return errors.New("there is none with that id")
		}
		return err
	})
}
