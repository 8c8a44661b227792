package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/app/server"
	"seckill/internal/buy/admission/path"
	"seckill/internal/gate/audit"
	"seckill/internal/identity/account"
	"seckill/internal/ops/drill"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/media"
	"seckill/internal/platform/postgres"
)

// Demo runs all roles in one process without external services until ctx ends. It writes
// the addresses and a walk-through to out.
func Demo(ctx context.Context, cfg *config.Config, log *slog.Logger, out io.Writer) error {
	cfg = cfg.ForDemo(config.Secret(rand.Text() + rand.Text()))
	if cfg.Media.Reveal() == "" {
		cfg.Media = media.InMemory // forgotten at the end, as all else
	}
	svc, err := openEmbedded(ctx)
	if err != nil {
		return err
	}
	a, err := build(ctx, cfg, allRoles(), svc, log)
	if err != nil {
		return errors.Join(explainListen(ctx, cfg, allRoles(), err), svc.Close())
	}
	made, err := a.seeding.seeder(0).Demo(ctx, cfg.PaymentWindow)
	if err != nil {
		return errors.Join(fmt.Errorf("fill the demo: %w", err), svc.Close())
	}
	saleID, itemID := made.Open.Sale.Public(), made.Open.Items[0].Public()
	a.tabs.Set(playgroundTabs(saleID, itemID))
	if _, err := io.WriteString(out, a.welcome(made)+walkThrough(saleID, itemID)); err != nil {
		return errors.Join(err, svc.Close())
	}
	return a.Run(ctx)
}

// welcome returns the text that the demo prints.
func (a *App) welcome(made *seed.DemoResult) string {
	shop := "http://" + browsable(a.PublicAddr())
	var b strings.Builder
	fmt.Fprintf(&b, `
Seckill demo. Everything runs in this process; Ctrl-C stops it and deletes all data.

  Shop        %s/
  Playground  %s/playground      (GraphQL, with the walk-through below among its examples)
  GraphQL     %s/graphql         (POST; WebSocket and SSE for subscriptions)
  Metrics     http://%s/metrics

  Open now    %s
  Opens soon  %s  (at %s)
  In Chinese  %s
              %s  (at %s)

  Accounts    (password of all: %s)
`, shop, shop, shop, browsable(a.AdminAddr()), sold(shop, made.Open), sold(shop, made.Soon), opening(made.Soon),
		sold(shop, made.ChineseOpen), sold(shop, made.ChineseSoon), opening(made.ChineseSoon), seed.DemoPassword)
	for _, u := range made.Users {
		fmt.Fprintf(&b, "              %-24s %s\n", u.Account, strings.ToLower(string(u.Role)))
	}
	return b.String()
}

// sold returns the title and the address of a sale.
func sold(shop string, of seed.DemoSale) string { return of.Title + "   " + shop + "/s/" + of.Slug }

func opening(of seed.DemoSale) string { return of.Opens.Local().Format("15:04:05") }

// browsable turns a listener address into a URL that a browser can open.
func browsable(addr net.Addr) string {
	if addr == nil {
		return "-"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// step is one document of the walk-through.
type step struct {
	title, note, document string
}

// walk buys one unit, from sign-in to the stored order: the first documents of
// docs/buyers-api.md. Names in capitals stand for values from earlier steps.
var walk = []step{
	{"Sign in", "The playground uses the tokens for the documents that follow. Its form at the top signs in as well.",
		`mutation SignIn {
  login(input: { account: "alice@demo.example", password: "PASSWORD" }) {
    tokens { accessToken accessTokenExpiresAt }
    userErrors { code message }
  }
}`},
	{"Look at the sale", "", `query Look {
  sales(first: 5) {
    nodes {
      id
      title
      phase
      startsAt
      items { id goods { name } price { amount currencyCode } stock { level remaining total } }
    }
  }
}`},
	{"Get a captcha", "Read the picture: the playground shows it above the answer, other clients open its data: URL in a browser tab.", `mutation Captcha {
  createCaptcha(input: { purpose: SECKILL, saleId: "SALE_ID", kind: TEXT }) {
    challenge { id prompt image parameters expiresAt }
    userErrors { code message }
  }
}`},
	{"Exchange the answer for a path token", "It is valid for your account, once, for 60 seconds.", `mutation Path {
  issueSeckillPath(input: { itemId: "ITEM_ID", captcha: { challengeId: "CHALLENGE_ID", answer: "ANSWER" } }) {
    path { token expiresAt }
    ticket { id }
    userErrors { code message }
  }
}`},
	{"Buy", "Stock is taken at once; the order follows.", `mutation Buy {
  placeOrder(input: { itemId: "ITEM_ID", pathToken: "PATH_TOKEN", idempotencyKey: "walk-through-0001" }) {
    orderTask { id status revision }
    replayed
    userErrors { code message ... on SoldOutError { waitlistOpen } }
  }
}`},
	{"Follow the order task", "A subscription: the first event is a snapshot, the last one carries the order.",
		`subscription Watch {
  orderTaskStatus(orderTaskId: "TASK_ID") {
    kind
    orderTask {
      status
      revision
      order { number status total { amount currencyCode } paymentDeadline }
      failure { code message }
    }
  }
}`},
	{"Your orders", "", `query Mine {
  myOrders(first: 5) {
    nodes { id number status item { goods { name } } total { amount currencyCode } }
  }
}`},
}

// walkSteps returns walk with the ids of a sale and an item filled in.
func walkSteps(saleID, itemID string) []step {
	fill := strings.NewReplacer("SALE_ID", saleID, "ITEM_ID", itemID, "PASSWORD", seed.DemoPassword).Replace
	return collect.Map(walk, func(s step) step { return step{s.title, s.note, fill(s.document)} })
}

// walkThrough returns the walk-through that the demo prints.
func walkThrough(saleID, itemID string) string {
	var b strings.Builder
	b.WriteString("\nWalk-through, as in the playground's examples. Other clients send the accessToken from the third step on:\nAuthorization: Bearer ACCESS_TOKEN.\n")
	for i, s := range walkSteps(saleID, itemID) {
		fmt.Fprintf(&b, "\n%d. %s\n   %s\n", i+1, strings.ReplaceAll(strings.TrimSpace(s.title+". "+s.note), "\n", " "),
			strings.ReplaceAll(s.document, "\n", "\n   "))
	}
	b.WriteString("\n")
	return b.String()
}

// playgroundTabs returns the examples of the playground; it opens with the first.
func playgroundTabs(saleID, itemID string) []server.Tab {
	tabs := make([]server.Tab, 0, len(walk))
	for _, s := range walkSteps(saleID, itemID) {
		heading := strings.TrimSpace(s.title + ".\n" + s.note)
		tabs = append(tabs, server.Tab{Title: s.title, Query: "# " + strings.ReplaceAll(heading, "\n", "\n# ") + "\n" +
			s.document + "\n"})
	}
	return tabs
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
	return &seed.Seeder{DB: s.db, Clock: s.clock, NewID: id.New[uuid.UUID], Gates: s.gates,
		Users: seedUsers{tokens: s.tokens, paths: s.paths, life: tokenLife}}
}

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
	users := collect.Map(in.Users, func(u seed.User) id.User { return u.ID })
	return s.paths.Grant(ctx, path.GrantInput{Sale: in.Sale, Item: in.Item, Users: users, Life: in.TTL})
}

// drillTarget prepares and audits drills on the services of an installation.
type drillTarget struct {
	seeding seeding
	auditor audit.Auditor
	ratio   float64       // permits per unit
	life    time.Duration // of access tokens; 0 = the default
}

func newDrillTarget(b base, s seeding) drillTarget {
	return drillTarget{
		seeding: s, ratio: b.cfg.PermitRatio,
		auditor: audit.Auditor{DB: b.svc.db, Redis: b.svc.redis, Keys: b.keys, Clock: b.clock},
	}
}

// Prepare implements drill.Target. Orders of a new sale stay unpaid for as long as it
// lasts.
func (t drillTarget) Prepare(ctx context.Context, in drill.Input) (*seed.Result, error) {
	seeder := t.seeding.seeder(t.life)
	if in.Sale == "" {
		return seeder.Run(ctx, seed.Input{
			Users: in.Users, Stock: in.Stock, Lasts: in.Lasts, PurchaseLimit: 1, PaymentWindow: in.Lasts, PermitRatio: t.ratio,
		})
	}
	sale, err := id.ParseSale(in.Sale)
	if err != nil {
		return nil, fmt.Errorf("--sale %q is not the id of a sale: it begins with sal_", in.Sale)
	}
	return seeder.Buyers(ctx, sale, in.Users)
}

// Audit implements drill.Target.
func (t drillTarget) Audit(ctx context.Context, sale string) (*audit.Report, error) {
	parsed, err := id.ParseSale(sale)
	if err != nil {
		return nil, audit.ErrUnknownSale
	}
	return t.auditor.Sale(ctx, parsed)
}

// DrillFaults selects the faults that need the services of the installation.
type DrillFaults struct {
	Redis  bool // close the connections of all clients of Redis
	Worker bool // kill and restart a worker that the drill started
}

// Drill runs a drill against a server on the given services.
func Drill(ctx context.Context, cfg *config.Config, in drill.Config, faults DrillFaults,
	log *slog.Logger) (_ *drill.Verdict, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	target := newDrillTarget(newBase(cfg, Roles{}, a.svc, log), a.seeding)
	if !cfg.Production() {
		target.life = max(cfg.AccessTokenTTL, in.Time)
	}
	in.Target = target
	if faults.Redis {
		in.Faults = append(in.Faults, drill.Fault{Name: "redis", Inject: a.svc.cutRedis})
	}
	if faults.Worker {
		worker, failure := drillWorker(ctx, cfg)
		if failure != nil {
			return nil, failure
		}
		defer func() {
			// A worker that ended by itself, or that was only starting, ends with an error too.
			if end := worker.End(max(drillWorkerGrace, 2*cfg.DrainTimeout)); errors.Is(end, drill.ErrKilled) {
				err = errors.Join(err, end)
			}
		}()
		in.Faults = append(in.Faults, drill.Fault{Name: "worker",
			Inject: func(context.Context) error { return worker.Kill() }})
	}
	return drill.Run(ctx, in)
}

// cutRedis closes the connections of all clients of Redis.
func (s *services) cutRedis(ctx context.Context) error {
	kill := func(ctx context.Context, c *redis.Client) error {
		for _, kind := range []string{"normal", "pubsub"} {
			if err := c.ClientKillByFilter(ctx, "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
				return err
			}
		}
		return nil
	}
	switch c := s.redis.Cmd.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, kill)
	case *redis.Client:
		return kill(ctx, c)
	}
	return errors.New("the kind of Redis is unknown")
}

// drillWorkerGrace is longer than a worker's drain.
const drillWorkerGrace = time.Minute

// drillWorker starts a worker in a process of its own. Its consumer name is the same after
// each start, so it continues with what it had read.
func drillWorker(ctx context.Context, cfg *config.Config) (*drill.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	environ := append(os.Environ(),
		config.EnvName("database-url")+"="+cfg.DatabaseURL.Reveal(), config.EnvName("redis-url")+"="+cfg.RedisURL.Reveal(),
		config.EnvName("redis-prefix")+"="+cfg.RedisPrefix, config.EnvName("jwt-key")+"="+cfg.JWTKey.Reveal(),
		config.EnvName("profile")+"="+string(cfg.Profile), config.EnvName("admin-addr")+"=127.0.0.1:0",
		config.EnvName("log-level")+"=error")
	return drill.Supervise(func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "serve", "--roles", "worker")
		cmd.Env = environ
		return cmd
	})
}

// demoDrill returns the handler that lets `seckill drill` use the demo; nil for other
// processes.
func demoDrill(b base, s seeding) http.Handler {
	if !b.svc.embedded {
		return nil
	}
	return drill.Handler(newDrillTarget(b, s))
}
