package simulate_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
)

// installation is one run: the services, the processes on them, and what happened.
type installation struct {
	t       testing.TB
	seed    uint64
	random  *source
	network *network
	db      *database
	redis   *redisServer
	log     *slog.Logger

	ending sync.WaitGroup // processes that have not ended
	mu     sync.Mutex
	serial int // guarded by mu; machines so far
}

const (
	redisAddr = "10.9.0.1:6379"
	shopAddr  = "shop.example:80"
)

func newInstallation(t testing.TB, seed uint64) *installation {
	in := &installation{t: t, seed: seed, random: newSource(seed, 0), log: slog.New(slog.DiscardHandler)}
	if os.Getenv("SIMULATE_LOG") != "" {
		in.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	in.network = newNetwork(newSource(seed, 1))
	empty, err := emptyDatabase()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := copyOf(empty)
	if err != nil {
		t.Fatal(err)
	}
	in.db = newDatabase(raw, newSource(seed, 2))
	in.redis, err = startRedis(in.network, &machine{name: "redis", addr: netip.MustParseAddr("10.9.0.1")}, redisAddr)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func (in *installation) machine(name string) *machine {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.serial++
	return &machine{name: name, addr: netip.AddrFrom4([4]byte{10, 0, byte(in.serial >> 8), byte(in.serial)})}
}

// clockOf is the clock of a machine.
type clockOf struct {
	network *network
	machine *machine
}

func (c clockOf) Now() time.Time {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	return time.Now().Add(c.machine.ahead).UTC()
}

func (in *installation) host(m *machine) app.Host {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) { return in.network.dial(ctx, m, addr) }
	return app.Host{
		Clock:     clockOf{in.network, m},
		Listen:    func(_ context.Context, _, addr string) (net.Listener, error) { return in.network.listen(m, addr) },
		Dial:      dial,
		Transport: &http.Transport{DialContext: dial},
		Database:  &connector{in.db, in.network, m},
		Shared:    true,
	}
}

func (in *installation) config(m *machine) *config.Config {
	cfg := config.Default()
	cfg.Profile, cfg.Limits = config.ProfileDevelopment, config.SwitchOff
	cfg.RedisURL, cfg.PublicURL = "redis://"+redisAddr+"/0", "http://"+shopAddr
	cfg.JWTKey, cfg.PowMax, cfg.CaptchaPool = "a key of a test, at least 32 bytes long", 20, 1
	cfg.AccessTokenTTL = 24 * time.Hour
	ip := m.addr.String()
	cfg.HTTPAddr, cfg.AdminAddr = ip+":8080", fmt.Sprintf("%s:%d", ip, 9000+int(m.addr.As4()[3]))
	return cfg
}

// process is a process of the product.
type process struct {
	machine *machine
	stop    context.CancelFunc
	ended   chan struct{}
	err     error
}

// start runs a process.
func (in *installation) start(m *machine, roles ...string) (*process, error) {
	a, err := app.OpenOn(context.Background(), in.host(m), in.config(m), roles, in.log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{machine: m, stop: cancel, ended: make(chan struct{})}
	in.ending.Go(func() {
		defer close(p.ended)
		p.err = a.Run(ctx)
	})
	return p, nil
}

// kill ends a process as kill -9 does: nothing of it reaches the network any more.
func (in *installation) kill(p *process) {
	in.network.kill(p.machine)
	p.stop()
}

// client returns the API client of a user on a machine.
func (in *installation) client(m *machine, token string) *apiclient.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return in.shop(ctx, m)
	}}
	h := &http.Client{Transport: transport}
	return &apiclient.Client{URL: "http://" + shopAddr, HTTP: h, Sockets: h, Token: token}
}

// shop connects to one of the API processes.
func (in *installation) shop(ctx context.Context, from *machine) (net.Conn, error) {
	in.network.mu.Lock()
	var open []string
	for addr := range in.network.listeners {
		if _, port, _ := net.SplitHostPort(addr); port == "8080" {
			open = append(open, addr)
		}
	}
	in.network.mu.Unlock()
	if len(open) == 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return in.network.dial(ctx, from, open[in.random.intn(len(open))])
}

var seeds = flag.Int("seeds", 3, "number of stories to run")

func TestSimulation(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { simulate(t, seed) }) })
	}
}

func simulate(t *testing.T, number uint64) {
	began := cpu()
	in := newInstallation(t, number)
	p, err := in.start(in.machine("all"), "api", "worker", "scheduler")
	if err != nil {
		t.Fatal(err)
	}
	opened := cpu()
	m := in.machine("tools")
	tools, err := app.OpenTools(t.Context(), in.host(m), in.config(m), in.log)
	if err != nil {
		t.Fatal(err)
	}
	made, err := tools.Seed(t.Context(), seed.Input{
		Users: 8, Stock: 5, Lasts: time.Minute, PurchaseLimit: 1, PaymentWindow: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	seeded := cpu()
	var wg sync.WaitGroup
	for i, u := range made.Users {
		c := in.client(in.machine(fmt.Sprintf("buyer %d", i)), u.AccessToken)
		wg.Go(func() {
			defer c.HTTP.CloseIdleConnections()
			if _, err := buy(t.Context(), c, made); err != nil && apiclient.Code(err) != "SOLD_OUT" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	bought := cpu()
	time.Sleep(10 * time.Second)
	rested := cpu()
	report, err := tools.Audit(t.Context(), made.SaleID)
	if err != nil || !report.OK || report.Postgres.Orders != 5 {
		t.Errorf("%+v %v", report, err)
	}
	p.stop()
	in.ending.Wait()
	if err := errors.Join(p.err, tools.Close()); err != nil {
		t.Error(err)
	}
	in.redis.stop()
	t.Logf("processor: open %s, seed %s, buy %s, ten seconds %s", opened-began, seeded-opened, bought-seeded, rested-bought)
}

func buy(ctx context.Context, c *apiclient.Client, made *seed.Result) (string, error) {
	for {
		ch, err := c.Challenge(ctx, "SECKILL", made.SaleID)
		if err != nil {
			if apiclient.Code(err) == "SALE_PAUSED" || apiclient.Code(err) == "" {
				time.Sleep(time.Second)
				continue
			}
			return "", err
		}
		solved, err := ch.Solve()
		if err != nil {
			return "", err
		}
		issued, err := c.IssuePath(ctx, made.ItemID, solved)
		if err != nil {
			return "", err
		}
		if issued.Path == nil {
			return "", errors.New("queue")
		}
		return c.PlaceOrder(ctx, made.ItemID, issued.Path.Token, rand.Text())
	}
}

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
