package app

import (
	"fmt"
	"net"
	"net/http"

	"seckill/internal/buy/order"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/account"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/notice"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/pay/payment/setup"
	"seckill/internal/pay/receipt"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/stream"
)

// paymentsGroup is the consumer group of the payment event stream.
const paymentsGroup = "payments"

// payments holds the services that pay, expire and refund orders and release their units.
type payments struct {
	service *payment.Service
	router  *stream.Router
	pages   http.Handler // of the sandbox bank; nil when it is off
	loops   []periodic.Loop
}

// paymentSetup holds what only the payments stage needs.
type paymentSetup struct {
	keys     auth.Keys
	listener net.Listener // nil without the API role
	security *account.SecurityLog
	draws    *waitlist.Service
	receipts payment.Receipts
}

func newPayments(b base, g gates, m messages, o orders, in paymentSetup) (payments, error) {
	gate := payment.NewRedisGate(g.gate, func(r order.Reservation, epoch, revision int64, remaining int) {
		g.stock.Update(r.Item, epoch, revision, remaining)
	})
	topic := payment.Topic(b.keys.Prefix)
	cfg := payment.Config{
		DB: b.svc.db, Orders: o.store, AfterCommit: o.afterCommit, Facts: b.facts(), Outbox: b.outbox, Receipts: in.receipts,
		Gate: gate, Clock: g.clock, Shared: g.clock, Registerer: b.registry, Log: b.log,
		Events: payment.EventStream{Publisher: m.publisher, Topic: topic}, Security: in.security, Inbox: m.inbox,
		Timeout:      b.scaled(payment.ProviderTimeout),
		ReturnWithin: payment.ReturnWithin, Persons: b.persons, Draws: in.draws,
	}
	base, page := baseURL(b.cfg, in.listener), mail.OrderPage(b.cfg.Storefront)
	cfg.Returns = b.storefronts(base)
	cfg.OrderPage = func(order id.Order, number string) string { return mail.Link(base, page.Path(order, number)) }
	cfg.EntryPage = func(slug string) string { return mail.Link(base, "/s/"+slug) }
	p := payments{}
	var err error
	if cfg.Providers, err = setup.Providers(b.cfg, base, g.clock, b.svc.host.Transport); err != nil {
		return p, err
	}
	if b.cfg.SandboxOn() {
		bank, err := p.addSandbox(b, g, in)
		if err != nil {
			return p, err
		}
		cfg.Providers = append(cfg.Providers, bank)
	}
	p.service = payment.New(cfg)
	p.loops = append(p.loops, order.OrderReturns(b.svc.db, gate.ReturnAll, g.clock, b.log))
	p.loops = append(p.loops, p.service.Loops()...)
	trimmer := stream.NewTrimmer(b.svc.redis.Cmd, []string{topic}, b.streamMetrics)
	p.loops = append(p.loops, periodic.Loop{Name: "trim payments", Every: trimEvery, Idle: idleTrim, Step: trimmer.Step,
		Log: b.log})
	p.router, err = newRouter(b, m, stream.Handler{Name: "payments", Topics: []string{topic}, Handle: p.service.Handle},
		consumer{group: paymentsGroup})
	return p, err
}

// addSandbox returns the built-in bank, and adds its pages and its loop.
func (p *payments) addSandbox(b base, g gates, in paymentSetup) (payment.Provider, error) {
	live := in.keys.Derive("sandbox call-backs") // derived from the current signing key and the previous one
	signer, err := sandbox.NewSigner(live[:min(len(live), 2)]...)
	if err != nil {
		return nil, fmt.Errorf("sandbox bank: %w", err)
	}
	base := baseURL(b.cfg, in.listener)
	bank := sandbox.NewBank(b.svc.db, g.clock)
	courier := sandbox.NewCourier(bank, base+"/webhooks/payments/"+sandbox.Name, signer, b.log)
	courier.Timeout = b.scaled(sandbox.CallTimeout)
	b.svc.onClose(func() error { courier.Close(); return nil })
	p.pages = sandbox.NewPages(bank, base+"/sandbox", b.log).Handler()
	p.loops = append(p.loops, courier.Loop())
	return sandbox.NewProvider(bank, base+"/sandbox", signer, g.clock), nil
}

// seller returns whom receipts name. The settings were checked at the start.
func seller(cfg *config.Config) receipt.Seller {
	s := receipt.Seller{Name: cfg.SellerName, Details: cfg.SellerLines()}
	if tax, err := receipt.NewTax(cfg.SellerTaxName, cfg.SellerTaxRate); err == nil {
		s.Tax = tax
	}
	return s
}

// receipts returns what writes receipts; nil without a channel to buyers.
func receipts(b base, m mailing, choices *notice.Service) payment.Receipts {
	if b.notices == nil {
		return nil
	}
	return receipt.Mailer{Outbox: m.outbox, Notices: b.notices, Choices: choices, Seller: seller(b.cfg),
		Page: mail.OrderPage(b.cfg.Storefront), Clock: b.clock}
}
