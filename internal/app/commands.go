package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/vektah/gqlparser/v2/formatter"

	"seckill/graph"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/recordloss"
	"seckill/internal/identity/account"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/ops/seed"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/staff/operator"
	"seckill/internal/staff/report"
)

// PrintSchema writes the API schema in SDL, or a part of it; "" = the whole schema.
func PrintSchema(out io.Writer, part graph.Part) error {
	schema := graph.Schema()
	if part != "" {
		schema = graph.SchemaPart(part)
	}
	formatter.NewFormatter(out, formatter.WithIndent("  ")).FormatSchema(schema)
	return nil
}

// Audit checks the invariants of one sale.
func Audit(ctx context.Context, cfg *config.Config, sale id.Sale) (_ *audit.Report, err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	auditor := audit.Auditor{DB: svc.db, Redis: svc.redis, Keys: reservation.Keys{Prefix: cfg.RedisPrefix},
		Clock: clock.System{}}
	return auditor.Sale(ctx, sale)
}

// AfterRestore lists the orders and payments that a loss of commits by Postgres concerns.
func AfterRestore(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *recordloss.Report, err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	keys := reservation.Keys{Prefix: cfg.RedisPrefix}
	cache := order.NewCache(svc.redis, keys.Tasks, clock.System{})
	return recordloss.Reporter{
		DB: svc.db, Redis: svc.redis, Keys: keys, Cache: cache,
		Orders: order.NewStore(order.StoreConfig{DB: svc.db, Log: log}),
	}.Report(ctx)
}

// ExportLog writes the log of a sale. It uses Postgres only.
func ExportLog(ctx context.Context, cfg *config.Config, sale id.Sale, out io.Writer) (_ *audit.Trailer, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	return audit.Exporter{DB: svc.db, Clock: clock.System{}}.Export(ctx, sale, out)
}

// Sales returns all sales of an installation, the last to start first.
func Sales(ctx context.Context, cfg *config.Config) (_ []*sale.Sale, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	sales, err := sale.NewStore(svc.db.Ent).All(ctx)
	slices.SortStableFunc(sales, func(a, b *sale.Sale) int { return b.StartsAt.Compare(a.StartsAt) })
	return sales, err
}

// AuditAll audits all sales of an installation except drafts, submitted and rejected ones,
// the last to start first, and passes each report to a function.
func AuditAll(ctx context.Context, cfg *config.Config, each func(*audit.Report) error) (err error) {
	sales, err := Sales(ctx, cfg)
	if err != nil {
		return err
	}
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	auditor := audit.Auditor{DB: svc.db, Redis: svc.redis, Keys: reservation.Keys{Prefix: cfg.RedisPrefix},
		Clock: clock.System{}}
	for _, v := range sales {
		if v.Status == sale.Draft || v.Status == sale.PendingApproval || v.Status == sale.Rejected {
			continue
		}
		report, err := auditor.Sale(ctx, v.ID)
		if err != nil {
			return fmt.Errorf("audit %s: %w", v.ID.Public(), err)
		}
		if err := each(report); err != nil {
			return err
		}
	}
	return nil
}

// Seed creates a sale and buyers in an installation.
func Seed(ctx context.Context, cfg *config.Config, in seed.Input, log *slog.Logger) (_ *seed.Result, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	life := cfg.AccessTokenTTL
	if !cfg.Production() {
		life = max(life, in.OpensIn+in.Lasts) // load tools do not refresh their tokens
	}
	if in.PermitRatio == 0 {
		in.PermitRatio = cfg.PermitRatio // running servers may use another ratio
	}
	return a.seeding.seeder(life).Run(ctx, in)
}

// SeedDemo creates the sales and users of the demo.
func SeedDemo(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *seed.DemoResult, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	return a.seeding.seeder(0).Demo(ctx, cfg.PaymentWindow)
}

// Unseed removes what Seed created.
func Unseed(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *seed.Removed, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	remover := seed.Remover{DB: a.svc.db, Accounts: a.users, Sales: a.operator}
	return remover.Remove(ctx)
}

// forCommand builds a process without roles, for a command. The caller closes its
// services.
func forCommand(ctx context.Context, cfg *config.Config, log *slog.Logger) (*App, error) {
	return forCommandOn(ctx, Host{}, cfg, log)
}

func forCommandOn(ctx context.Context, h Host, cfg *config.Config, log *slog.Logger) (*App, error) {
	svc, err := openServicesOn(ctx, h, cfg)
	if err != nil {
		return nil, err
	}
	a, err := build(ctx, cfg, Roles{}, svc, log)
	if err != nil {
		return nil, errors.Join(err, svc.Close())
	}
	return a, nil
}

// Report returns the report of a sale, with the figures of an earlier one unless that is
// the zero id. The error is report.ErrUnknownSale when a sale does not exist. It needs no
// signing key.
func Report(ctx context.Context, cfg *config.Config, saleID, earlier id.Sale, log *slog.Logger) (_ *report.Report,
	err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	b := newBase(cfg, Roles{}, svc, log)
	inspector := stream.Inspector{Client: svc.redis.Cmd, Clock: b.clock}
	source := report.Source{DB: svc.db, Sales: sale.NewStore(svc.db.Ent), Stats: newFigures(b, inspector), Clock: b.clock}
	made, err := source.Build(ctx, saleID)
	if err != nil || earlier.IsZero() {
		return made, err
	}
	return made, source.Compare(ctx, made, earlier)
}

// Export writes the orders of a sale as CSV and returns their number. The error is
// report.ErrUnknownSale when the sale does not exist. It uses Postgres only, and is in the
// security log.
func Export(ctx context.Context, cfg *config.Config, saleID id.Sale, out io.Writer, log *slog.Logger) (orders int,
	err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	service := operator.New(operator.Config{
		DB: svc.db, Sales: sale.NewStore(svc.db.Ent), Security: account.NewSecurityLog(svc.db, clock.System{}, log),
	})
	export, err := service.OpenExport(ctx, id.User{}, saleID)
	if err != nil {
		return 0, err
	}
	if export == nil {
		return 0, report.ErrUnknownSale
	}
	return export.CSV(ctx, out)
}

// ChangeDeadLetters calls fn with the dead letters of an installation, for the command
// line. It needs no signing key. fn may replay letters, and nothing else: a writer that
// fails tasks is not wired.
func ChangeDeadLetters(ctx context.Context, cfg *config.Config, log *slog.Logger,
	fn func(*orderintake.DeadLetters) error) (err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	b := newBase(cfg, Roles{}, svc, log)
	store := order.NewStore(order.StoreConfig{
		DB: svc.db, Cache: order.NewCache(svc.redis, b.keys.Tasks, b.clock), Clock: b.clock, Log: log,
	})
	letters := deadletter.NewStore(deadletter.Config{DB: svc.db, Clock: b.clock})
	return fn(orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: svc.db, Store: letters, Letters: newDeadLetters(b, letters), Orders: store, Clock: b.clock, Log: log,
	}))
}

// ExpireOrderInput is the input of ExpireOrder.
type ExpireOrderInput struct {
	Order   id.Order
	Account string // of the operator in whose name it is done
	Note    string
}

// ExpireOrder expires an unpaid order in the name of an operator, for the command line.
// Beside a refusal it returns the order.
func ExpireOrder(ctx context.Context, cfg *config.Config, in ExpireOrderInput, log *slog.Logger) (_ *order.Order,
	err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	admin := account.NewAdmin(account.AdminConfig{Store: account.NewStore(a.svc.db, clock.System{}, names(cfg)), Log: log})
	u, err := admin.ByAccount(ctx, in.Account)
	switch {
	case err != nil:
		return nil, err
	case u == nil || u.Disabled:
		return nil, fmt.Errorf("--operator %s: there is no such active user", in.Account)
	}
	return a.operator.ExpireOrder(ctx, operator.ExpireInput{By: sale.Actor{ID: u.ID, Role: u.Role}, Order: in.Order,
		Note: in.Note})
}

// ReconcileInput is the input of ReconcilePayments.
type ReconcileInput struct {
	Provider string
	Day      time.Time // UTC
}

// ReconcilePayments compares the payments of a day with their provider.
func ReconcilePayments(ctx context.Context, cfg *config.Config, in ReconcileInput,
	log *slog.Logger) (_ payment.Reconciled, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return payment.Reconciled{}, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	return a.payments.Reconcile(ctx, in.Provider, in.Day)
}

// ChangeWebhooks calls fn with the webhooks of an installation, for the command line.
// Running processes apply the changes within a second.
func ChangeWebhooks(ctx context.Context, cfg *config.Config, log *slog.Logger,
	fn func(*webhook.Service) error) (err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	keys, err := signingKeys(cfg)
	if err != nil {
		return err
	}
	return fn(webhook.New(webhook.Config{
		DB: svc.db, Keys: keys, Networks: cfg.WebhookNetworks,
		Security: account.NewSecurityLog(svc.db, clock.System{}, log), Log: log,
	}))
}

// Users holds the services with which the command line changes users.
type Users struct {
	Admin    *account.Admin
	Security *account.SecurityLog
	Tokens   *servicetoken.Service
}

// ChangeUsers calls fn with the services that change users of an installation. Running
// processes apply the changes within a second.
func ChangeUsers(ctx context.Context, cfg *config.Config, log *slog.Logger, fn func(Users) error) (err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	c := clock.System{}
	store := account.NewStore(svc.db, c, names(cfg))
	security := account.NewSecurityLog(svc.db, c, log)
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: svc.redis.Cmd, Prefix: cfg.RedisPrefix, Keep: cfg.AccessTokenTTL + leeway, Clock: c, Log: log,
	})
	mails, texts := outboxes(cfg, log)
	keys, err := signingKeys(cfg)
	if err != nil { // processes cannot open copies of another key, and read the user from the database
		if keys, err = auth.NewKeys(auth.Key{ID: "none", Secret: []byte(rand.Text() + rand.Text())}); err != nil {
			return err
		}
	}
	admin := account.NewAdmin(account.AdminConfig{
		Store: store, Security: security, Log: log, Mail: mails, Texts: texts,
		Directory: account.NewDirectory(account.DirectoryConfig{Store: store, Client: svc.redis.Script,
			Prefix: cfg.RedisPrefix, Keys: keys, Clock: c, Log: log}),
		Revocations: revocations,
	})
	return fn(Users{Admin: admin, Security: security, Tokens: servicetoken.New(servicetoken.Config{
		DB: svc.db, Revocations: revocations, Security: security, Clock: c, Log: log,
	})})
}

// ImportUsers creates customers from a file. It needs neither Redis nor a signing key.
func ImportUsers(ctx context.Context, cfg *config.Config, in account.Import) (_ account.Imported, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return account.Imported{}, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	done, err := account.NewStore(svc.db, clock.System{}, names(cfg)).Import(ctx, in)
	if done.Created > 0 && !in.DryRun {
		account.NewSecurityLog(svc.db, clock.System{}, slog.New(slog.DiscardHandler)).Write(ctx,
			account.Event{Kind: account.EventImported, Detail: fmt.Sprintf("%d customers", done.Created)})
	}
	return done, err
}

// outboxes returns what writes e-mails, and messages to phone numbers, about changed accounts;
// nil without a way to send them or the signing key, which seals them.
func outboxes(cfg *config.Config, log *slog.Logger) (mails, texts *mail.Outbox) {
	if cfg.SMTP() == nil && cfg.NoticeHookURL == "" {
		return nil, nil
	}
	keys, err := signingKeys(cfg)
	if err != nil {
		log.Warn("users get no notice by e-mail or on their phones", slog.Any("error", err))
		return nil, nil
	}
	return outboxesOf(cfg, mail.NewOutbox(keys, clock.System{}))
}

// outboxesOf returns an outbox for e-mails and for messages to phone numbers; nil for a way
// that the settings do not have.
func outboxesOf(cfg *config.Config, outbox *mail.Outbox) (mails, texts *mail.Outbox) {
	if cfg.SMTP() != nil {
		mails = outbox
	}
	if cfg.NoticeHookURL != "" {
		texts = outbox
	}
	return mails, texts
}

func names(cfg *config.Config) account.Names { return account.Names{Country: cfg.PhoneCountry} }

// NewUser describes an account that the command line creates.
type NewUser struct {
	Account     string
	Role        string // CUSTOMER, OPERATOR or ADMIN
	DisplayName string
	Password    string
}

// CreateUser creates an account and returns its public id.
func CreateUser(ctx context.Context, cfg *config.Config, u NewUser) (_ string, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	created, err := account.NewStore(svc.db, clock.System{}, names(cfg)).Create(ctx, account.NewUser{
		Account: u.Account, DisplayName: u.DisplayName, Password: u.Password,
	}, auth.Role(u.Role))
	if err != nil {
		return "", notMade(u, err)
	}
	return created.ID.Public(), nil
}

// notMade explains on the command line why an account was not created.
func notMade(u NewUser, err error) error {
	if fault.ReasonOf(err) == fault.AccountTaken {
		return fmt.Errorf("%s has an account already: sign in with it, or give another name", u.Account)
	}
	bad, ok := errors.AsType[fault.BadField](err)
	if !ok || len(bad.At) == 0 {
		return err
	}
	flag := map[string]string{"account": "--account", "displayName": "--name",
		"password": "--password"}[bad.At[len(bad.At)-1]]
	return fmt.Errorf("%s: %s", flag, inWords(bad.Rule))
}

// inWords describes the requirement behind a rule.
func inWords(rule fault.Rule) string {
	switch rule {
	case fault.EmailOrPhoneWithCountry:
		return "give an e-mail address, or a phone number with its country code"
	case fault.NotTheAccount:
		return "give another one than the account itself"
	case fault.NoControlCharacters:
		return "leave control characters out"
	}
	switch rule.Code {
	case fault.MinLengthCode:
		return fmt.Sprintf("give at least %s characters", rule.Bound)
	case fault.MaxLengthCode:
		return fmt.Sprintf("give at most %s characters", rule.Bound)
	}
	return "does not keep the rule " + rule.String()
}
