// Package drill puts load on a running server and checks the invariants afterwards. Its
// buyers use the public API as the shop does: sign in, solve a proof of work, exchange it
// for a path token, wait in the waiting room, place the order, follow the order task.
//
// It owns no tables or keys. A Target makes sale and buyers and audits the sale; faults
// are functions of the caller, except for cut connections, which are its own.
package drill

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/periodic"
)

// Bounds of a drill.
const (
	MaxBuyers = 20_000
	MaxTime   = 30 * time.Minute
)

const (
	minFaultEvery = 100 * time.Millisecond

	// The look-ups after the last outcome: as many as give a history of 10,000 operations, unless that is more than
	// maxLookUps for each buyer.
	lookUps, maxLookUps = 10_000, 50

	signIns      = 8                // at once: a server hashes two passwords at a time
	connections  = 256              // most connections for queries and mutations
	firstNetwork = 198<<24 | 18<<16 // 198.18.0.0/15 is reserved for load tests (RFC 2544)
	networks     = 512              // of 256 addresses in that range
	block        = networks << 8
)

// Target makes what a drill needs in the installation of the server.
type Target interface {
	// Prepare makes buyers, and a sale unless in names one.
	Prepare(ctx context.Context, in Input) (*seed.Result, error)
	// Audit checks the invariants of a sale over all stores.
	Audit(ctx context.Context, sale string) (*audit.Report, error)
}

// Input is what Target.Prepare makes.
type Input struct {
	Sale  string        `json:"sale"`  // public id; "" = a new sale
	Users int           `json:"users"` // buyers
	Stock int           `json:"stock"` // units of a new sale
	Lasts time.Duration `json:"lasts"` // how long a new sale is open
}

// Fault is a kind of fault that a drill injects.
type Fault struct {
	Name   string
	Inject func(ctx context.Context) error
}

// Config configures Run.
type Config struct {
	URL        string // of the server
	Target     Target
	Input      Input
	Over       time.Duration // over which the buyers arrive; 0 = all at once
	Time       time.Duration // limit for all outcomes
	Cut        bool          // also close connections of the buyers
	Faults     []Fault       // injected in turn
	FaultEvery time.Duration
	FaultFor   time.Duration // from the start of the crowd
	Progress   io.Writer     // lines, or a chart on a terminal
	Terminal   bool          // whether Progress is a terminal
	Pictures   string        // folder of the picture of a history that breaks I6; "" = the present one
}

// Validate returns what is wrong with the configuration, nil if it is valid. Addresses
// other than this machine's need remote.
func (c Config) Validate(remote bool) error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("--url %q: give the address of a server: http://127.0.0.1:8080", c.URL)
	case !remote && !Loopback(u.Hostname()):
		return fmt.Errorf("--url %s is another machine: add --allow-remote if its owner agrees to the load", c.URL)
	case c.Input.Users < 1 || c.Input.Users > MaxBuyers:
		return fmt.Errorf("--buyers %d: choose between 1 and %d", c.Input.Users, MaxBuyers)
	case c.Input.Sale == "" && (c.Input.Stock < 1 || c.Input.Stock > seed.MaxStock):
		return fmt.Errorf("--stock %d: choose between 1 and %d", c.Input.Stock, seed.MaxStock)
	case c.Time < time.Second || c.Time > MaxTime:
		return fmt.Errorf("--time %s: choose between 1s and %s", c.Time, MaxTime)
	case c.Over < 0 || c.Over >= c.Time:
		return fmt.Errorf("--over %s: choose less than --time", c.Over)
	case c.FaultEvery < minFaultEvery || c.FaultFor <= 0 || c.FaultFor >= c.Time:
		return fmt.Errorf("--fault-every %s for %s: choose at least %s, for less than --time", c.FaultEvery, c.FaultFor,
			minFaultEvery)
	}
	return nil
}

// Loopback reports whether a host name or address is this machine.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Run runs a drill. The error reports what kept it from a verdict.
func Run(ctx context.Context, c Config) (*Verdict, error) {
	made, err := c.Target.Prepare(ctx, c.Input)
	if err != nil {
		return nil, err
	}
	before, err := c.Target.Audit(ctx, made.SaleID)
	if err != nil {
		return nil, err
	}
	dial := &dialer{}
	defer dial.close()
	shared := newCrowd(made.SaleID, made.ItemID)
	buyers := recruit(c.URL, dial, shared, made.Users)
	limited, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	if err := await(limited, buyers[0]); err != nil {
		return nil, err
	}
	show := newDisplay(c.Progress, c.Terminal, shared)
	if err := signIn(limited, buyers); err != nil {
		return nil, err
	}
	show.line("%d buyers for %d units of %s", len(buyers), before.Postgres.Available, made.SaleID)
	if c.Cut {
		c.Faults = append(c.Faults, Fault{"cut", dial.cut})
	}
	began := time.Now()
	stopFaults := injectAll(limited, c, show)
	stopShow := show.run()
	rush(limited, buyers, c.Over)
	took := time.Since(began)
	each(buyers, func(_ int, b *buyer) { b.look(limited, min(maxLookUps, (lookUps+len(buyers)-1)/len(buyers))) })
	injected := stopFaults()
	ended := time.Now()
	stopShow()
	if err := errors.Join(injected.err, ctx.Err()); err != nil {
		return nil, err
	}
	after, err := settle(ctx, c.Target, made.SaleID)
	if err != nil {
		return nil, err
	}
	settled := time.Since(ended)
	own, stock := c.Input.Sale == "", -1
	if own {
		stock = before.Postgres.Available
	}
	checks := evidence{buyers: buyers, before: before, after: after, own: own, settled: settled,
		recovery: recovery(buyers, injected.last), history: shared.history.Check(stock, c.Pictures)}.check()
	v := &Verdict{
		SaleID: made.SaleID, OK: true, Buyers: len(buyers), Stock: before.Postgres.Available, Took: took.Seconds(),
		Settled: settled.Seconds(),
		Counts:  shared.counts(), Faults: injected.counts, Latencies: shared.latencies(), Checks: checks, Audit: after,
	}
	for _, check := range checks {
		v.OK = v.OK && check.OK
	}
	return v, nil
}

// recruit returns a buyer for each account. Each has its own client address, the first
// buyers in different networks, which the server uses if the drill connects from a trusted
// proxy.
func recruit(at string, dial *dialer, shared *crowd, accounts []seed.LoadUser) []*buyer {
	calls := &http.Client{Transport: dial.transport(connections)}
	sockets := &http.Client{Transport: dial.transport(0)}
	buyers := make([]*buyer, len(accounts))
	for i, account := range accounts {
		var from [4]byte
		binary.BigEndian.PutUint32(from[:], uint32(firstNetwork+i/block*block+i%networks<<8+i%block/networks))
		buyers[i] = &buyer{
			Client:  apiclient.Client{URL: at, HTTP: calls, Sockets: sockets, From: netip.AddrFrom4(from).String()},
			account: account, crowd: shared, number: i, tasks: map[string]bool{}, orders: map[string]bool{},
		}
	}
	return buyers
}

// await waits until the server shows the sale as open.
func await(ctx context.Context, b *buyer) error {
	for {
		var data struct{ Sale *struct{ Phase string } }
		err := b.Execute(ctx, &data, `query($id: ID!) { sale(by: { id: $id }) { phase } }`,
			apiclient.Object{"id": b.crowd.sale})
		switch {
		case err == nil && data.Sale != nil && data.Sale.Phase == "LIVE":
			return nil
		case err == nil && data.Sale != nil && data.Sale.Phase != "UPCOMING" && data.Sale.Phase != "PAUSED":
			// a gate that is being loaded shows as paused
			return fmt.Errorf("the sale %s is %s", b.crowd.sale, data.Sale.Phase)
		case ctx.Err() != nil:
			return fmt.Errorf("the server at %s does not show the sale %s as open: does it use the same database and Redis? %w",
				b.URL, b.crowd.sale, errors.Join(err, ctx.Err()))
		}
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return fmt.Errorf("no server at %s: %w", b.URL, err)
		}
		b.sleep(ctx, 0)
	}
}

// signIn signs all buyers in, a few at a time.
func signIn(ctx context.Context, buyers []*buyer) error {
	next := make(chan *buyer)
	errs := make(chan error, signIns)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for range signIns {
		wg.Go(func() {
			for b := range next {
				if err := b.signIn(ctx); err != nil {
					errs <- err
					cancel()
					return
				}
			}
		})
	}
	for _, b := range buyers {
		select {
		case next <- b:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("sign in: %w", err)
	default:
		return ctx.Err()
	}
}

// rush lets all buyers buy and waits for their outcomes.
func rush(ctx context.Context, buyers []*buyer, over time.Duration) {
	each(buyers, func(i int, b *buyer) {
		if over > 0 && periodic.Sleep(ctx, over*time.Duration(i)/time.Duration(len(buyers))) != nil {
			return
		}
		b.buy(ctx)
	})
}

// each lets all buyers act at the same time, and waits for them.
func each(buyers []*buyer, act func(i int, b *buyer)) {
	var wg sync.WaitGroup
	for i, b := range buyers {
		wg.Go(func() { act(i, b) })
	}
	wg.Wait()
}

// settle audits until the stores are consistent and no message waits, for settleLimit. It
// returns the last report.
func settle(ctx context.Context, target Target, sale string) (*audit.Report, error) {
	deadline := time.Now().Add(settleLimit)
	for {
		report, err := target.Audit(ctx, sale)
		if err == nil && report.OK && report.Stream.Unread+report.Stream.Pending == 0 {
			return report, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return report, err
		}
		_ = periodic.Sleep(ctx, pause) // another audit follows, whose error is returned
	}
}
