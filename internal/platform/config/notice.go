package config

import (
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Notice are the settings of notices to buyers.
type Notice struct {
	NoticeHookURL    string        `name:"notice-hook-url" group:"mail" placeholder:"URL" help:"Service of the operator that sends notices by SMS or push: https://messages.example.com/seckill. Without it, notices are sent by e-mail only."`
	NoticeHookSecret Secret        `name:"notice-hook-secret" group:"mail" placeholder:"SECRET" help:"Secret that signs the requests to SECKILL_NOTICE_HOOK_URL, as Standard Webhooks defines: whsec_ and base64."`
	NoticeDeadline   time.Duration `name:"notice-deadline" default:"3m" group:"mail" help:"How long before the payment deadline of an order its buyer gets a notice, at most half of the payment window."`
	NoticeOpening    time.Duration `name:"notice-opening" default:"10m" group:"mail" help:"How long before the opening of a sale those who asked for it are reminded."`
}

// notices checks the service of the operator. Its address is checked again by the client.
func (p *Problems) notices(c *Config) {
	if (c.NoticeHookURL == "") != (c.NoticeHookSecret == "") {
		p.add("notice-hook-secret", "and SECKILL_NOTICE_HOOK_URL go together: give both or neither")
		return
	}
	if c.NoticeHookURL == "" {
		return
	}
	u := p.readable("notice-hook-url", c.NoticeHookURL)
	if u != nil && (u.Hostname() == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || len(c.WebhookNetworks) == 0)) {
		p.add("notice-hook-url", "is no address of a service: write https://messages.example.com/seckill; http needs its network in SECKILL_WEBHOOK_NETWORKS")
	}
	if _, err := standardwebhooks.NewWebhook(c.NoticeHookSecret.Reveal()); err != nil ||
		!strings.HasPrefix(c.NoticeHookSecret.Reveal(), "whsec_") {
		p.add("notice-hook-secret", "is no secret of Standard Webhooks: write whsec_ and base64, as from openssl rand -base64 32")
	}
}
