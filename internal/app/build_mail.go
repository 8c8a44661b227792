package app

import (
	"context"
	"net"

	"seckill/internal/auth"
	"seckill/internal/config"
	"seckill/internal/mail"
	"seckill/internal/notice"
	"seckill/internal/payment"
	"seckill/internal/receipt"
)

// mailing holds what writes and sends e-mails; both are nil without a mail server.
type mailing struct {
	outbox *mail.Outbox
	sender *mail.Sender
	purge  func(context.Context) (map[string]int, error)
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
	return receipt.Mailer{Outbox: m.outbox, Notices: b.notices, Choices: choices, Seller: seller(b.cfg), Clock: b.clock}
}

func newMailing(b base, keys auth.Keys, l net.Listener) (mailing, error) {
	m := mailing{purge: func(ctx context.Context) (map[string]int, error) { return mail.Purge(ctx, b.svc.db, b.clock) }}
	server := b.cfg.SMTP()
	if server == nil {
		return m, nil
	}
	m.outbox = mail.NewOutbox(keys, b.clock)
	var err error
	m.sender, err = mail.NewSender(mail.Config{
		DB: b.svc.db, Keys: keys, Server: *server, Shop: baseURL(b.cfg, l),
		Subjects: notice.Subjects{DB: b.svc.db}, Clock: b.clock, Registerer: b.registry, Log: b.log,
	})
	return m, err
}
