package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/formatter"

	"seckill/graph/generated"
	"seckill/internal/account"
	"seckill/internal/admission/path"
	"seckill/internal/audit"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/id"
	"seckill/internal/operator"
	"seckill/internal/order"
	"seckill/internal/orderintake"
	"seckill/internal/payment"
	"seckill/internal/postgres"
	"seckill/internal/report"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/seed"
	"seckill/internal/stream"
)

// PrintSchema writes the API schema in SDL.
func PrintSchema(out io.Writer) error {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
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
	auditor := audit.Auditor{DB: svc.db, Redis: svc.redis, Keys: reservation.Keys{Prefix: cfg.RedisPrefix}}
	return auditor.Sale(ctx, sale)
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
	auditor := audit.Auditor{DB: svc.db, Redis: svc.redis, Keys: reservation.Keys{Prefix: cfg.RedisPrefix}}
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

// forCommand builds a process without roles, for a command. The caller closes its
// services.
func forCommand(ctx context.Context, cfg *config.Config, log *slog.Logger) (*App, error) {
	svc, err := openServices(ctx, cfg)
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
func Report(ctx context.Context, cfg *config.Config, saleID, earlier id.Sale, log *slog.Logger) (_ *report.Report, err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	b := newBase(cfg, Roles{}, svc, log)
	inspector := stream.Inspector{Client: svc.redis.Cmd, Dead: newDeadLetters(b, nil), Clock: b.clock}
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
func Export(ctx context.Context, cfg *config.Config, saleID id.Sale, out io.Writer, log *slog.Logger) (orders int, err error) {
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

// seeding holds what the seed commands and the demo need of a process.
type seeding struct {
	db     *postgres.DB
	clock  clock.Clock
	gates  seed.Gates
	tokens *auth.Tokens
	paths  *path.Service
}

// seeder returns a Seeder. Access tokens of load accounts live for tokenLife; their
// sessions exist only in the tokens.
func (s seeding) seeder(tokenLife time.Duration) *seed.Seeder {
	return &seed.Seeder{DB: s.db, Clock: s.clock, NewID: id.New[uuid.UUID], Gates: s.gates, Users: seedUsers{s.tokens, s.paths, tokenLife}}
}

// seedUsers implements seed.Users.
type seedUsers struct {
	tokens *auth.Tokens
	paths  *path.Service
	life   time.Duration // of access tokens
}

// Hash implements seed.Users.
func (seedUsers) Hash(password string) (string, error) { return account.HashPassword(password) }

// Token implements seed.Users.
func (s seedUsers) Token(u seed.User) (string, error) {
	token, _, err := s.tokens.Mint(auth.MintInput{User: u.ID, Session: id.New[id.Session](), Role: u.Role, Life: s.life})
	return token, err
}

// Paths implements seed.Users.
func (s seedUsers) Paths(ctx context.Context, in seed.PathsInput) ([]string, error) {
	users := make([]id.User, len(in.Users))
	for i, u := range in.Users {
		users[i] = u.ID
	}
	return s.paths.Grant(ctx, path.GrantInput{Sale: in.Sale, Item: in.Item, Users: users, Life: in.TTL})
}

// ChangeDeadLetters calls fn with the dead letters of an installation, for the command
// line. It needs no signing key. fn may replay letters, and nothing else: a writer that
// fails tasks is not wired.
func ChangeDeadLetters(ctx context.Context, cfg *config.Config, log *slog.Logger, fn func(*orderintake.DeadLetters) error) (err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	b := newBase(cfg, Roles{}, svc, log)
	store := order.NewStore(order.StoreConfig{
		DB: svc.db, Cache: order.NewCache(svc.redis, b.keys.Tasks, b.clock), Clock: b.clock, Log: log,
	})
	return fn(orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: svc.db, Letters: newDeadLetters(b, nil), Orders: store, Clock: b.clock, Log: log,
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
func ExpireOrder(ctx context.Context, cfg *config.Config, in ExpireOrderInput, log *slog.Logger) (_ *order.Order, err error) {
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
	return a.operator.ExpireOrder(ctx, operator.ExpireInput{By: sale.Actor{ID: u.ID, Role: u.Role}, Order: in.Order, Note: in.Note})
}

// ReconcileInput is the input of ReconcilePayments.
type ReconcileInput struct {
	Provider string
	Day      time.Time // UTC
}

// ReconcilePayments compares the payments of a day with their provider.
func ReconcilePayments(ctx context.Context, cfg *config.Config, in ReconcileInput, log *slog.Logger) (_ payment.Reconciled, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return payment.Reconciled{}, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	return a.payments.Reconcile(ctx, in.Provider, in.Day)
}
