package main

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"seckill/internal/app"
	"seckill/internal/ops/doctor"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

type initCmd struct {
	File         string `default:"seckill.toml" placeholder:"FILE" help:"File of settings to write, or to continue with when it is there."`
	Account      string `placeholder:"ACCOUNT" help:"The first administrator's e-mail address."`
	PasswordFile string `placeholder:"FILE" help:"File with the administrator's password, - for standard input. Without it, one is drawn and printed once."`
	AdminURL     string `name:"database-admin-url" placeholder:"URL" help:"Postgres as a user that may create the role and the database, when they are missing: postgres://postgres:password@host:5432/postgres?sslmode=require."`
	Shop         string `default:"trial" enum:"trial,stripe" help:"trial: orders are paid at the built-in bank; or stripe: names the settings of a sale for money, and checks each."`
	Seed         bool   `help:"With a new file of settings, make an open sale and accounts that can buy, too, as seckill seed does."`
}

func (initCmd) Help() string {
	return "Creates the role and the database where it may, writes a file of settings with a new key, applies the migrations, " +
		"makes the first administrator, and runs the doctor. Asks on a terminal for what is missing. Safe to run again: " +
		"what is there is kept, and the file is never overwritten.\n\n" + examples(
		"seckill init",
		"seckill init --database-url postgres://seckill@localhost/seckill?sslmode=disable --redis-url redis://localhost:6379/0 --account admin@example.com",
		"seckill init --seed",
		"seckill init --shop stripe --public-url https://shop.example.com",
	)
}

// Defaults of what init asks for.
const (
	usualDatabase = "postgres://seckill@localhost:5432/seckill?sslmode=disable"
	usualRedis    = "redis://localhost:6379/0"
)

func (i initCmd) Run(c *call) error {
	if i.Seed && i.Shop != "trial" {
		return errors.New("--seed makes a sale and buyers for tests: leave it out with --shop " + i.Shop)
	}
	fresh, err := i.settings(c)
	if err != nil {
		return err
	}
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	password, err := i.password(c) // before anything is made
	if err != nil {
		return err
	}
	made, err := i.services(c)
	if err != nil {
		return err
	}
	c.cfg.DatabaseURL = config.Secret(made.URL)
	if fresh {
		if err := i.write(c); err != nil {
			return err
		}
	}
	if err := i.read(c); err != nil { // as serve will
		return err
	}
	if fresh && c.cfg.DatabaseURL.Reveal() != made.URL {
		return fmt.Errorf("%s has the address of Postgres with the new password, and %s hides it: unset the variable, and run this again",
			i.File, config.EnvName("database-url"))
	}
	if err := (migrateUpCmd{}).Run(c); postgres.IsRefusal(err) {
		return fmt.Errorf("%w: the role must own the database: run ALTER DATABASE … OWNER TO … in psql, and this again", err)
	} else if err != nil {
		return err
	}
	if err := i.administrator(c, password); err != nil {
		return err
	}
	if fresh && i.Seed {
		if err := (seedCmd{Users: 10, Stock: 10, Lasts: time.Hour, Limit: 1, Yes: true}).Run(c); err != nil {
			return err
		}
	}
	return i.finish(c)
}

// settings completes the settings: from the file that is there, else from flags, the
// environment and answers. fresh = there is no file yet.
func (i *initCmd) settings(c *call) (fresh bool, err error) {
	_, absent := os.Stat(i.File)
	switch {
	case absent == nil:
		given := *c.cfg
		if err := i.read(c); err != nil {
			return false, err
		}
		for flag, differs := range map[string]bool{
			"database-url": given.DatabaseURL != "" && given.DatabaseURL != c.cfg.DatabaseURL,
			"redis-url":    given.RedisURL != "" && given.RedisURL != c.cfg.RedisURL,
		} {
			if differs {
				return false, fmt.Errorf("%s is there, has another %s, and is not overwritten: leave --%s out, or name another file with --file",
					i.File, strings.ReplaceAll(flag, "-", "_"), flag)
			}
		}
		fmt.Fprintf(c.env.stdout, "settings       %s is there and is kept\n", i.File)
	case !errors.Is(absent, fs.ErrNotExist):
		return false, fmt.Errorf("--file: %w: name a file in a folder that this user can read", absent)
	default:
		fresh = true
		if c.cfg.DatabaseURL == "" {
			if c.cfg.DatabaseURL, err = askFor[config.Secret](c, "Postgres", usualDatabase, "database-url"); err != nil {
				return fresh, err
			}
		}
		if c.cfg.RedisURL == "" {
			if c.cfg.RedisURL, err = askFor[config.Secret](c, "Redis", usualRedis, "redis-url"); err != nil {
				return fresh, err
			}
		}
	}
	if i.Account == "" {
		i.Account, err = askFor[string](c, "E-mail address of the first administrator", "admin@example.com", "account")
	}
	return fresh, err
}

// read reads the settings as a command that names the file.
func (i initCmd) read(c *call) error {
	cfg, settings, err := config.Parse([]string{"--config", i.File}, lookupIn(c.env.environ))
	if err != nil {
		return err
	}
	c.cfg, c.settings = cfg, settings
	return nil
}

// askFor asks on a terminal. Without one, the flag is required.
func askFor[T ~string](c *call, what, usual, flag string) (T, error) {
	if c.env.stdin == nil || !term.IsTerminal(int(c.env.stdin.Fd())) {
		return "", fmt.Errorf("--%s is missing, and there is no terminal to ask on: give it, for example --%s %s", flag, flag, usual)
	}
	fmt.Fprintf(c.env.stderr, "%s [%s]: ", what, usual)
	line, err := bufio.NewReader(c.env.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return T(cmp.Or(strings.TrimSpace(line), usual)), nil
}

// password returns the administrator's password, "" to draw one.
func (i initCmd) password(c *call) (string, error) {
	switch i.PasswordFile {
	case "":
		return "", nil
	case "-":
		return userCreateCmd{}.password(c.env)
	}
	text, err := os.ReadFile(i.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("--password-file: %w: name a file that this user can read", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		return "", errors.New("--password-file has an empty first line: write the password there")
	}
	return line, nil
}

// services creates what is missing in Postgres, and checks Redis.
func (i initCmd) services(c *call) (postgres.Provisioned, error) {
	redis, err := redisconn.Open(c.ctx, c.cfg.RedisURL.Reveal())
	if err == nil {
		err = redis.Check(c.ctx)
		_ = redis.Close() // nothing was written
	}
	if err != nil {
		return postgres.Provisioned{}, doctor.RedisAway(c.cfg, err)
	}
	made, err := postgres.Provision(c.ctx, c.cfg.DatabaseURL.Reveal(), i.AdminURL)
	if lacks, ok := errors.AsType[*postgres.CannotProvisionError](err); ok && lacks.Missing {
		return made, fmt.Errorf("postgres has no role %q with a database %q, and this user may not create them (%w): "+
			"give --database-admin-url, run this as the system user postgres, or run in psql: "+
			`CREATE ROLE "%s" LOGIN PASSWORD '…'; CREATE DATABASE "%s" OWNER "%s" ENCODING 'UTF8' TEMPLATE template0;`,
			lacks.Role, lacks.Database, lacks.Cause, lacks.Role, lacks.Database, lacks.Role)
	}
	if err != nil {
		return made, doctor.PostgresAway(c.cfg, err)
	}
	for _, line := range [][2]string{{"role", made.Role}, {"database", made.Database}} {
		if line[1] != "" {
			fmt.Fprintf(c.env.stdout, "%-14s %s created\n", line[0], line[1])
		}
	}
	return made, nil
}

// keyBytes is the length of a new signing key.
const keyBytes = 48

// write writes the file of settings.
func (i initCmd) write(c *call) error {
	key := c.cfg.JWTKey.Reveal()
	if key == "" {
		random := make([]byte, keyBytes)
		_, _ = rand.Read(random) // never fails
		key = base64.StdEncoding.EncodeToString(random)
	}
	given := []config.Given{
		{Flag: "database-url", Value: c.cfg.DatabaseURL.Reveal()},
		{Flag: "redis-url", Value: c.cfg.RedisURL.Reveal()},
		{Flag: "jwt-key", Value: key, Note: "signs access tokens; all processes of the installation have the same"},
	}
	if c.cfg.RedisPrefix != config.Default().RedisPrefix {
		given = append(given, config.Given{Flag: "redis-prefix", Value: c.cfg.RedisPrefix})
	}
	if c.cfg.Profile != config.ProfileProduction {
		given = append(given, config.Given{Flag: "profile", Value: string(c.cfg.Profile)})
	}
	if i.Shop == "trial" {
		given = append(given, config.Given{Flag: "sandbox", Value: string(config.SandboxTrial), Note: "orders are paid at the built-in bank, and every page says so"})
		if c.cfg.PublicURL != "" {
			given = append(given, config.Given{Flag: "public-url", Value: c.cfg.PublicURL})
		}
	} else {
		given = append(given, saleSettings(c.cfg)...)
	}
	if err := config.CreateFile(i.File, given); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is there now, and is not overwritten: run this again", i.File)
		}
		return fmt.Errorf("%w: name a file in a folder that this user can write, with --file", err)
	}
	fmt.Fprintf(c.env.stdout, "settings       %s written, for its owner only\n", i.File)
	return nil
}

// administrator makes the first administrator, unless it is there.
func (i initCmd) administrator(c *call, password string) error {
	var role auth.Role
	if err := app.ChangeUsers(c.ctx, c.cfg, c.logger(), func(users app.Users) error {
		u, err := users.Admin.ByAccount(c.ctx, i.Account)
		if u != nil {
			role = u.Role
		}
		return err
	}); err != nil {
		return err
	}
	switch role {
	case auth.Admin:
		fmt.Fprintf(c.env.stdout, "administrator  %s is there, with its password as it was\n", i.Account)
		return nil
	case "":
	default:
		return fmt.Errorf("--account: %s has an account with the role %s: run `seckill user role --account %s --role admin`, or name another",
			i.Account, strings.ToLower(string(role)), i.Account)
	}
	drawn := password == ""
	if drawn {
		password = rand.Text()
	}
	name, _, _ := strings.Cut(i.Account, "@")
	if _, err := app.CreateUser(c.ctx, c.cfg, app.NewUser{Account: i.Account, Role: string(auth.Admin), DisplayName: name,
		Password: password}); err != nil {
		return err
	}
	if drawn {
		_, err := fmt.Fprintf(c.env.stdout, "administrator  %s, password %s (shown this once)\n", i.Account, password)
		return err
	}
	_, err := fmt.Fprintf(c.env.stdout, "administrator  %s\n", i.Account)
	return err
}

// finish runs the doctor and prints what comes next.
func (i initCmd) finish(c *call) error {
	fmt.Fprintln(c.env.stdout)
	checked := (doctorCmd{}).Run(c)
	if checked != nil && !errors.Is(checked, errFinding) {
		return checked
	}
	if i.Shop == "stripe" {
		fmt.Fprintln(c.env.stdout)
		if !printSaleSettings(c) {
			checked = errFinding
		}
	}
	named := ""
	if filepath.Clean(i.File) != config.DefaultFile {
		named = " --config " + i.File
	}
	next := "seckill seed" + named + " --users 10 --stock 5 --yes-make-test-buyers   # a sale and accounts that can buy"
	switch {
	case i.Seed:
		next = "seckill seed" + named + " --remove   # removes the sale and its accounts"
	case i.Shop == "stripe":
		next = "seckill user create" + named + " --account ops@example.com --role operator   # prepares sales"
	}
	_, err := fmt.Fprintf(c.env.stdout, "\nNext:\n  seckill serve%s\n  %s\n  seckill doctor%s\n", named, next, named)
	return errors.Join(err, checked)
}

// saleSetting is a setting of a sale for money with Stripe.
type saleSetting struct {
	flag, example, why string
	value              func(*config.Config) string
	optional           bool
}

// stripeSettings lists the settings of a sale for money with Stripe.
func stripeSettings() []saleSetting {
	secret := func(get func(*config.Config) config.Secret) func(*config.Config) string {
		return func(c *config.Config) string { return get(c).Reveal() }
	}
	return []saleSetting{
		{flag: "sandbox", example: "off", why: "the built-in bank gives goods away", value: func(c *config.Config) string { return string(c.Sandbox) }},
		{flag: "public-url", example: "https://shop.example.com", why: "where buyers and Stripe reach the shop, by https", value: func(c *config.Config) string { return c.PublicURL }},
		{flag: "trusted-proxies", example: "10.0.0.0/8", why: "the proxy in front, which speaks https: limits count by the buyers' addresses", value: func(c *config.Config) string {
			if len(c.TrustedProxies) == 0 {
				return ""
			}
			return c.TrustedProxies[0].String()
		}},
		{flag: "smtp-url", example: "smtps://user:password@mail.example.com:465", why: "receipts and lost passwords", value: secret(func(c *config.Config) config.Secret { return c.SMTPURL })},
		{flag: "smtp-from", example: "Shop <shop@example.com>", why: "sender of e-mails", value: func(c *config.Config) string { return c.SMTPFrom }},
		{flag: "payments.stripe.key", example: "sk_live_…", why: "secret key of the Stripe account", value: secret(func(c *config.Config) config.Secret { return c.StripeKey })},
		{flag: "payments.stripe.webhook-secret", example: "whsec_…", why: "of the endpoint at PUBLIC_URL/webhooks/payments/stripe", value: secret(func(c *config.Config) config.Secret { return c.StripeWebhookSecret })},
		{flag: "payments.stripe.publishable-key", example: "pk_live_…", why: "cards are taken on the page of the order; without it, on a page of Stripe", value: func(c *config.Config) string { return c.StripePublishableKey }, optional: true},
		{flag: "shop.name", example: "Example Shop", why: "in the header and in e-mails", value: func(c *config.Config) string { return c.ShopName }},
		{flag: "shop.seller-name", example: "Example Ltd", why: "seller on receipts", value: func(c *config.Config) string { return c.SellerName }},
		{flag: "shop.tax-rate", example: "19", why: "tax on receipts; without it, they name none", value: func(c *config.Config) string { return c.SellerTaxRate }, optional: true},
	}
}

// saleSettings returns the settings for a new file: those that are given, and the others as
// comments.
func saleSettings(cfg *config.Config) (given []config.Given) {
	for _, s := range stripeSettings() {
		g := config.Given{Flag: s.flag, Value: s.value(cfg), Note: s.why}
		if g.Value == "" {
			g.Value, g.Empty = s.example, true
		}
		given = append(given, g)
	}
	return given
}

// printSaleSettings prints each setting of a sale for money and whether it is fit, and reports
// whether all are.
func printSaleSettings(c *call) (ok bool) {
	ok = true
	w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
	problems := strings.Split(fmt.Sprint(app.Fit(c.cfg, roles)), "\n")
	for _, s := range stripeSettings() {
		state, what := "ok", s.why
		value := s.value(c.cfg)
		switch wrong := s.wrong(value); {
		case value == "" && s.optional:
			state = "optional"
		case value == "":
			state, what = "missing", fmt.Sprintf("%s: write %s in the file of settings", s.why, s.example)
		case wrong != "":
			state, what = "wrong", wrong
		}
		for _, p := range problems {
			if strings.HasPrefix(p, config.Name(s.flag)+" ") {
				state, what = "wrong", p
			}
		}
		ok = ok && (state == "ok" || state == "optional")
		fmt.Fprintf(w, "%s\t%s\t%s\n", state, config.Name(s.flag), what)
	}
	_ = w.Flush() // the reader may be gone
	return ok
}

// wrong returns why a value is not that of a sale for money, "" when it is.
func (s saleSetting) wrong(value string) string {
	switch {
	case s.flag == "sandbox" && value != string(config.SandboxOff):
		return "set it to off: its bank gives goods away"
	case s.flag == "public-url" && value != "" && !strings.HasPrefix(strings.ToLower(value), "https://"):
		return "Stripe reports to https addresses only"
	case strings.HasPrefix(s.flag, "payments.stripe.") && strings.Contains(value, "_test_"):
		return "is a key of test mode: anyone can pay with a test card"
	}
	return ""
}
