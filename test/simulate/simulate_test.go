package simulate_test

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
	"unsafe"

	"seckill/ent/user"
	"seckill/internal/app"
	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
)

// installation is one run: the services, the processes on them, and what happened.
type installation struct {
	t        testing.TB
	seed     uint64
	most     int // faults
	random   *source
	network  *network
	db       *database
	redis    *redisServer
	bank     *bank
	slots    []*slot
	buyers   []*buyer
	coverage *coverage
	log      *slog.Logger
	defaults *config.Config

	usual   time.Duration         // longest delay of a write without faults
	entered [states]chan struct{} // guarded by mu; closed when a buyer enters the state

	ending     sync.WaitGroup // processes and servers that have not ended
	supervised sync.WaitGroup
	began      time.Time

	mu     sync.Mutex
	serial int       // guarded by mu; machines so far
	loss   time.Time // guarded by mu; when Redis or the database lost data last

	recordLost bool // guarded by mu; the database did: the bank may know more

	story  []string       // guarded by mu
	counts map[string]int // guarded by mu
	failed bool           // guarded by mu
}

// note adds a line to the story.
func (in *installation) note(line string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.story = append(in.story, fmt.Sprintf("%8.3f %s", time.Since(in.began).Seconds(), line))
}

// errorLog writes what the product logs as an error to the story, so that an answer INTERNAL has its reason.
type errorLog struct{ in *installation }

func (l errorLog) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(strings.TrimSpace(string(line)), " level=ERROR ")
	l.in.note(text)
	return len(line), nil
}

func (in *installation) count(what string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.counts[what]++
}

// fail notes a violation.
func (in *installation) fail(format string, args ...any) {
	in.note("VIOLATION " + fmt.Sprintf(format, args...))
	in.mu.Lock()
	defer in.mu.Unlock()
	in.failed = true
}

const (
	redisAddr = "10.9.0.1:6379"
	shopAddr  = "shop.example:80"
)

func newInstallation(t testing.TB, seed uint64, e *engine) *installation {
	in := &installation{t: t, seed: seed, random: newSource(seed, 0), began: time.Now(), counts: map[string]int{},
		defaults: e.defaults}
	if *verbose {
		in.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	} else {
		in.log = slog.New(slog.NewTextHandler(errorLog{in}, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	for s := range in.entered {
		in.entered[s] = make(chan struct{})
	}
	in.usual = []time.Duration{2 * time.Millisecond, 15 * time.Millisecond, 50 * time.Millisecond}[in.random.intn(3)]
	in.network = newNetwork(newSource(seed, 1), in.usual)
	in.db = newDatabase(e)
	var err error
	in.redis, err = startRedis(in.network, &machine{name: "redis", addr: netip.MustParseAddr("10.9.0.1")}, redisAddr, e.scripts)
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

// Now returns the wall clock of the machine. The monotonic clock of a wrong one is right, as
// on a real machine, which package time cannot express.
func (c clockOf) Now() time.Time {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	now := time.Now().UTC()
	shown := now.Add(c.machine.ahead)
	monotonic := func(t *time.Time) *int64 { return &(*timeFields)(unsafe.Pointer(t)).monotonic } //nolint:gosec // of this process
	*monotonic(&shown) = *monotonic(&now)
	return shown
}

// timeFields are those of a time.Time that time.Now returned.
type timeFields struct {
	wall      uint64
	monotonic int64
	location  *time.Location
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
	cfg := new(config.Config)
	*cfg = *in.defaults
	cfg.Profile, cfg.Limits = config.ProfileProduction, config.SwitchOff
	cfg.RedisURL, cfg.PublicURL = "redis://"+redisAddr+"/0", "http://"+shopAddr
	cfg.JWTKey, cfg.PowMax, cfg.CaptchaPool = "a key of a test, at least 32 bytes long", 20, 1
	cfg.AccessTokenTTL, cfg.Sandbox, cfg.Playground = 24*time.Hour, config.SandboxOff, config.AutoSwitchOff
	cfg.PaymentServiceURL = "http://" + bankAddr
	cfg.PaymentServiceSecret = config.Secret("whsec_" + base64.StdEncoding.EncodeToString(providertest.SignedSecret))
	cfg.WaitlistOffer, cfg.PathTTL = 4*time.Second, 6*time.Second
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

var (
	seeds   = flag.Int("seeds", 200, "number of stories to run")
	within  = flag.Duration("within", 75*time.Second, "time after which no further story begins; 0 = no limit")
	from    = flag.Uint64("from", 0, "seed of the first story")
	most    = flag.Int("faults", 6, "most faults of a story")
	procs   = flag.Int("procs", 1, "GOMAXPROCS")
	verbose = flag.Bool("log", false, "print the log of the product")
	stories = flag.Bool("story", false, "print each story")
)

// Sizes of a story.
const (
	buyers   = 8
	accounts = buyers + 1 // one tries after the faults
	opensIn  = time.Second
	window   = 7 * time.Second // to pay, of which the product keeps the last five seconds
	arrive   = 4 * time.Second // within which the buyers come
	give     = 9 * time.Second // until which a refused buyer tries again
	settles  = 3 * time.Minute // most time until all has ended after the last fault
)

// beginning is an installation with a loaded sale, as all stories with this stock begin.
type beginning struct {
	stock    int
	name     string // of the copy of the database
	redis    redisCopy
	made     *seed.Result
	operator string // token
}

// newBeginning makes the sale.
func newBeginning(t *testing.T, e *engine, stock int) *beginning {
	b := &beginning{stock: stock, name: fmt.Sprintf("stock%d", stock)}
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, uint64(stock))
		if err := e.replace("main", ""); err != nil {
			t.Fatal(err)
		}
		in := newInstallation(t, 0, e)
		defer in.redis.stop()
		tools, err := in.tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.made, err = tools.Seed(t.Context(), seed.Input{Users: accounts, Stock: stock, OpensIn: opensIn, Lasts: time.Hour,
			PurchaseLimit: 1, PaymentWindow: window})
		if err != nil {
			t.Fatal(err)
		}
		operator := seed.User{ID: id.New[id.User](), Account: "operator@shop.example", Role: auth.Operator}
		err = tools.DB().Ent.User.Create().SetID(operator.ID).SetAccount(operator.Account).SetDisplayName("Operator").
			SetPasswordHash("none").SetRole(user.RoleOPERATOR).SetCreatedAt(time.Now().UTC()).Exec(t.Context())
		if err == nil {
			b.operator, err = tools.Token(operator)
		}
		if err := errors.Join(err, tools.Close(), e.replace(b.name, "main")); err != nil {
			t.Fatal(err)
		}
		b.redis = in.redis.copy()
	})
	return b
}

func TestInvariantsHoldAfterAnyStoryOfFaults(t *testing.T) {
	runtime.GOMAXPROCS(*procs)
	debug.SetGCPercent(2000)
	e, err := newEngine()
	if err != nil {
		t.Fatal(err)
	}
	var begin []*beginning
	for _, stock := range []int{2, 3, 5, 7} {
		begin = append(begin, newBeginning(t, e, stock))
	}
	all := &totals{coverage: coverage{counts: map[string]*[states]int{}}, counts: map[string]int{}}
	before, began := cpu(), time.Now()
	for seed := *from; seed < *from+uint64(*seeds) && all.violations < maxViolations; seed++ {
		if *within > 0 && time.Since(began) > *within {
			break
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed, e, begin[seed%uint64(len(begin))], all) })
		})
		all.stories++
	}
	t.Logf("%d stories, %s of processor each; %v\n%s", all.stories, (cpu()-before)/time.Duration(max(1, all.stories)),
		all.counts, &all.coverage)
}

// maxViolations ends a run: further ones are mostly the same.
const maxViolations = 3

// totals are what all stories count.
type totals struct {
	coverage   coverage
	counts     map[string]int
	stories    int
	violations int
}

// simulate runs a story.
func simulate(t *testing.T, number uint64, e *engine, b *beginning, all *totals) {
	started := cpu()
	cryptotest.SetGlobalRandom(t, number)
	if err := e.replace("main", b.name); err != nil {
		t.Fatal(err)
	}
	in := newInstallation(t, number, e)
	in.most, in.coverage = *most, &all.coverage
	in.redis.load(b.redis)
	if err := in.openBank(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tools, err := in.tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	in.open(ctx)
	for i := range accounts {
		in.buyers = append(in.buyers, in.newBuyer(i, b.made.Users[i]))
	}
	shopping, stop := context.WithCancel(ctx)
	var people, staff sync.WaitGroup
	for _, x := range in.buyers[:buyers] {
		people.Go(func() {
			x.pause(shopping, arrive)
			x.run(shopping, b.made)
		})
	}
	staff.Go(func() { in.operate(shopping, in.client(in.machine("operator"), b.operator)) })
	in.disturb()
	in.settle(ctx, tools, b, &people)
	stop()
	people.Wait()
	staff.Wait()
	cancel()
	in.supervised.Wait()
	in.bank.stop()
	if err := tools.Close(); err != nil {
		in.fail("tools: %v", err)
	}
	in.redis.stop()
	in.ending.Wait()
	in.note(fmt.Sprintf("end, %s of processor", cpu()-started))
	for what, n := range in.counts {
		all.counts[what] += n
	}
	all.counts["virtual seconds"] += int(time.Since(in.began).Seconds())
	switch story := fmt.Sprintf("seed %d, stock %d:\n%s", number, b.stock, strings.Join(in.story, "\n")); {
	case in.failed:
		all.violations++
		t.Error(story)
	case *stories:
		t.Log(story)
	}
}

func (in *installation) newBuyer(i int, u seed.LoadUser) *buyer {
	r := newSource(in.seed, 10+uint64(i))
	return &buyer{
		Client: in.client(in.machine(fmt.Sprintf("buyer %d", i)), u.AccessToken), in: in, number: i, random: r,
		plan: plan(r.intn(int(plans))), until: in.began.Add(give), tasks: map[string]bool{}, failed: map[string]string{},
	}
}

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
