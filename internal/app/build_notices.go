package app

import (
	"net"

	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/notice"
)

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
		Shop: baseURL(b.cfg, in.listener), Clock: c, Registerer: b.registry, Log: b.log, Admissions: b.admitted,
	}
	if b.cfg.NoticeHookURL != "" {
		cfg.Hook = &notice.Target{URL: b.cfg.NoticeHookURL, Secret: b.cfg.NoticeHookSecret.Reveal()}
	}
	if private := b.cfg.PushPrivateKey; private != "" {
		public, err := config.PushPublicKey(private)
		if err != nil {
			return nil, err
		}
		cfg.Web = &notice.Web{PrivateKey: private.Reveal(), PublicKey: public, Subject: b.cfg.PushSubject, Services: b.cfg.PushServices}
	}
	return notice.New(cfg)
}
