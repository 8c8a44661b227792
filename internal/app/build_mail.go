package app

import (
	"context"
	"net"

	"seckill/internal/auth"
	"seckill/internal/mail"
)

// mailing holds what writes and sends e-mails; both are nil without a mail server.
type mailing struct {
	outbox *mail.Outbox
	sender *mail.Sender
	purge  func(context.Context) (map[string]int, error)
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
		DB: b.svc.db, Keys: keys, Server: *server, Shop: baseURL(b.cfg, l), Clock: b.clock, Registerer: b.registry, Log: b.log,
	})
	return m, err
}
