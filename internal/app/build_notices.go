package app

import (
	"context"
	"net"

	"seckill/internal/identity/account"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
)

// mailing holds what writes and sends messages.
type mailing struct {
	outbox *mail.Outbox // of e-mails; nil without a mail server
	texts  *mail.Outbox // of messages to phone numbers; nil without the operator's service
	sender *mail.Sender // nil without both
	purge  func(context.Context) (map[string]int, error)
}

func newMailing(b base, keys auth.Keys) mailing {
	m := mailing{purge: func(ctx context.Context) (map[string]int, error) { return mail.Purge(ctx, b.svc.db, b.clock) }}
	m.outbox, m.texts = outboxesOf(b.cfg, mail.NewOutbox(keys, b.clock))
	return m
}

// newSender returns what sends the messages of a mailing; nil without a way to users.
func newSender(b base, in noticeParts, texts mail.Texts) (*mail.Sender, error) {
	if in.mailing.outbox == nil && in.mailing.texts == nil {
		return nil, nil
	}
	return mail.NewSender(mail.Config{
		DB: b.svc.db, Keys: in.keys, Server: b.cfg.SMTP(), Shop: baseURL(b.cfg, in.listener), Texts: texts,
		Subjects: notice.Subjects{DB: b.svc.db}, Clock: b.clock, Registerer: b.registry, Log: b.log,
	})
}

// newNoticeOutbox returns what writes facts for notices; nil without a channel to buyers.
func newNoticeOutbox(cfg *config.Config) *notice.Outbox {
	rest := cfg.NoticeHookURL != "" || cfg.PushPrivateKey != ""
	if cfg.SMTP() == nil && !rest {
		return nil
	}
	return notice.NewOutbox(cfg.NoticeDeadline, rest)
}

// newAdmissions returns what keeps admissions for notices; nil where nothing is sent to
// browsers.
func newAdmissions(cfg *config.Config) *notice.Admissions {
	if cfg.PushPrivateKey == "" {
		return nil
	}
	return &notice.Admissions{}
}

// noticeParts are the stages that notices need.
type noticeParts struct {
	keys     auth.Keys
	mailing  mailing
	listener net.Listener // nil without the API role
}

func newNotices(b base, c clock.Clock, in noticeParts) (*notice.Service, error) {
	cfg := notice.Config{
		DB: b.svc.db, Keys: in.keys, Mail: in.mailing.outbox, Networks: b.cfg.WebhookNetworks, Opening: b.cfg.NoticeOpening,
		Shop: baseURL(b.cfg, in.listener), Page: mail.OrderPage(b.cfg.Storefront), Clock: c, Registerer: b.registry,
		Log: b.log, Admissions: b.admitted,
	}
	if b.cfg.NoticeHookURL != "" {
		cfg.Hook = &notice.Target{URL: b.cfg.NoticeHookURL, Secret: b.cfg.NoticeHookSecret.Reveal()}
	}
	if private := b.cfg.PushPrivateKey; private != "" {
		public, err := config.PushPublicKey(private)
		if err != nil {
			return nil, err
		}
		cfg.Web = &notice.Web{PrivateKey: private.Reveal(), PublicKey: public, Subject: b.cfg.PushSubject,
			Services: notice.PushServices()}
		if b.cfg.PushServices != nil {
			cfg.Web.Services = b.cfg.PushServices
		}
	}
	return notice.New(cfg)
}

func newWebhooks(b base, c clock.Clock, m messages, keys auth.Keys, security *account.SecurityLog) *webhook.Service {
	return webhook.New(webhook.Config{
		DB: b.svc.db, Keys: keys, Networks: b.cfg.WebhookNetworks, Outbox: b.outbox, Clock: c, Inbox: m.inbox,
		Security:   security,
		Registerer: b.registry, Log: b.log,
	})
}
