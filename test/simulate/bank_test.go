package simulate_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"seckill/internal/pay/payment/providertest"
	"seckill/internal/platform/id"
)

const bankAddr = "10.9.0.2:80"

// bank is the payment service. It reports by webhooks: once, several times, late or not at
// all.
type bank struct {
	*providertest.Bank
	in      *installation
	service *providertest.Signed
	server  *http.Server
	machine *machine
	client  *http.Client

	mu      sync.Mutex
	trouble bankTrouble // guarded by mu
	serial  int         // guarded by mu; reports so far
	reports sync.WaitGroup
}

// bankTrouble is what is wrong with the bank.
type bankTrouble struct {
	away   bool // calls are not answered
	unseen bool // calls have their effect, and no reply
	silent bool // nothing is reported
	double bool // all is reported several times
	late   bool // reports come seconds later
}

func (in *installation) openBank() error {
	m := &machine{name: "bank", addr: netip.MustParseAddr("10.9.0.2")}
	b := &bank{Bank: providertest.NewBank(func() time.Time { return time.Now().UTC() }), in: in, machine: m}
	b.service = providertest.NewSigned(b.Bank)
	b.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return in.shop(ctx, m) }, DisableKeepAlives: true}}
	l, err := in.network.listen(m, bankAddr)
	if err != nil {
		return err
	}
	b.server = &http.Server{Handler: http.HandlerFunc(b.serve), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	in.bank = b
	in.ending.Go(func() { _ = b.server.Serve(l) }) // until stop
	return nil
}

func (b *bank) stop() {
	b.reports.Wait()
	_ = b.server.Close()
}

func (b *bank) set(t bankTrouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = t
}

func (b *bank) now() bankTrouble {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trouble
}

func (b *bank) serve(w http.ResponseWriter, r *http.Request) {
	switch trouble := b.now(); {
	case trouble.away:
		http.Error(w, "away", http.StatusBadGateway)
	case trouble.unseen:
		b.service.ServeHTTP(&unseen{}, r)
		panic(http.ErrAbortHandler)
	default:
		b.service.ServeHTTP(w, r)
	}
}

// unseen takes a reply that is not sent.
type unseen struct{ header http.Header }

func (u *unseen) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}
func (*unseen) Write(b []byte) (int, error) { return len(b), nil }
func (*unseen) WriteHeader(int)             {}

// report sends webhooks about a charge. A silent bank sends none, unless the charge was closed before
// its money came: nobody would ask for it again.
func (b *bank) report(of id.Payment, closed bool) {
	b.mu.Lock()
	b.serial++
	trouble, name := b.trouble, fmt.Sprintf("evt_%d", b.serial)
	b.mu.Unlock()
	if trouble.silent && !closed {
		return
	}
	times := 1
	if trouble.double {
		times = 3
	}
	for range times {
		b.reports.Go(func() {
			if trouble.late {
				time.Sleep(b.in.random.upTo(12 * time.Second))
			}
			for range 30 {
				charge, ok := b.Charge(of)
				if !ok {
					return
				}
				header, body, ok := b.service.Report(name, charge)
				if !ok || b.post(header, body) {
					return
				}
				time.Sleep(time.Second)
			}
		})
	}
}

func (b *bank) post(header http.Header, body []byte) bool {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+shopAddr+"/webhooks/payments/service", bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	res, err := b.client.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode/100 == 2
}
