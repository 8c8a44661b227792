package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"seckill/internal/identity/oidc/issuer"
	"seckill/internal/outbox/mail"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/setup"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/config"
)

const areaPayments = "payments"

// payments reports whether the keys of the providers can be read, where each must send its
// reports, whether that address leads to this shop, and what keeps real money out.
func (r *report) payments(ctx context.Context, d Deps) {
	cfg := d.Config
	if cfg.Production() && cfg.Sandbox == config.SandboxOn {
		r.add(areaPayments, Error, "SECKILL_SANDBOX=on in production: its bank approves whatever a visitor wants, so that goods are given away; "+
			"set it to off, or for a trial to trial, which says so on every page")
	}
	if cfg.Production() && cfg.Sandbox == config.SandboxTrial {
		r.add(areaPayments, OK, "SECKILL_SANDBOX=trial: orders can be paid without money, and every page says so; set it to off before the first real sale")
	}
	if cfg.Production() && strings.Contains(cfg.StripeKey.Reveal(), "_test_") {
		r.add(areaPayments, Warning, "payments.stripe.key is a key of test mode: anyone can pay orders with a test card")
	}
	base := strings.TrimSuffix(cfg.PublicURL, "/")
	providers, err := setup.Providers(cfg, base, d.Clock, nil)
	if err != nil && d.Fit == nil { // which reports it
		r.add(areaPayments, Error, fmt.Sprintf("a key of a payment provider cannot be read: %v", err))
	}
	if len(providers) == 0 || base != "" && !cfg.HasPublicURL() {
		return
	}
	if !strings.HasPrefix(strings.ToLower(base), "https://") {
		r.add(areaPayments, Warning, "SECKILL_PUBLIC_URL is not https: payment providers report to https addresses only")
		return
	}
	for _, p := range providers {
		r.callbacks(ctx, d, p)
	}
}

// callbacks checks that the address for call-backs leads to this shop: it takes them by
// POST alone, so that it refuses a GET as no other server would.
func (r *report) callbacks(ctx context.Context, d Deps, p payment.Provider) {
	at := strings.TrimSuffix(d.Config.PublicURL, "/") + "/webhooks/payments/" + p.Name()
	found := p.Name() + " reports to " + at
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		r.add(areaPayments, Error, fmt.Sprintf("%s, which is no address: %v", found, err))
		return
	}
	res, err := cmp.Or(d.Client, &http.Client{}).Do(req)
	if err != nil {
		r.add(areaPayments, Warning, fmt.Sprintf(
			"%s, which this host does not reach: %v; start the shop, and check SECKILL_PUBLIC_URL, DNS and the proxy", found,
			err))
		return
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(res.Header.Get("Allow"), http.MethodPost) {
		r.add(areaPayments, Error, fmt.Sprintf(
			"%s, which is not this shop: it answered %d instead of 405; check SECKILL_PUBLIC_URL and the proxy", found,
			res.StatusCode))
		return
	}
	r.add(areaPayments, OK, found+", which leads to this shop")
	if s, ok := p.(*stripe.Provider); ok {
		r.stripeEvents(ctx, s, at)
	}
}

// stripeEvents checks that Stripe sends every type of event that the shop acts on.
func (r *report) stripeEvents(ctx context.Context, p *stripe.Provider, at string) {
	missing, err := p.Unreported(ctx, at)
	switch {
	case err != nil:
		r.add(areaPayments, Warning, fmt.Sprintf(
			"what Stripe's endpoint sends cannot be read: %v; let the key read webhook endpoints, or compare its events with docs/payments.md", err))
	case len(missing) > 0:
		r.add(areaPayments, Error, fmt.Sprintf("no enabled endpoint of Stripe sends %s to %s: add what is missing in Stripe's dashboard; "+
			"until then orders are paid, and entries of draws authorized, only once the shop asks", strings.Join(missing, ", "), at))
	default:
		r.add(areaPayments, OK, "Stripe sends every event that the shop needs")
	}
}

const areaMail = "mail"

// mail signs in at the mail server. Without one there is nothing to report: passwords are
// then reset by operators.
func (r *report) mail(ctx context.Context, d Deps) {
	server := d.Config.SMTP()
	if server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	client, err := mail.Dial(ctx, *server, d.MailTLS)
	if err != nil {
		r.add(areaMail, Error, fmt.Sprintf("SECKILL_SMTP_URL: %v", err))
		return
	}
	found := fmt.Sprintf("the mail server %s:%s accepts this shop", server.Host, server.Port)
	if !client.International() {
		found += "; it has no SMTPUTF8, so that addresses such as 用户@example.com get no e-mail"
	}
	_ = client.Close()
	if server.Plain {
		r.add(areaMail, Warning, found+", without encryption: keep it on this host or a private network, or set SECKILL_SMTP_TLS=required")
		return
	}
	r.add(areaMail, OK, found)
}

const areaIssuers = "issuers"

// issuers reads the file of the systems whose access tokens are accepted, and their keys.
func (r *report) issuers(ctx context.Context, d Deps) {
	if d.Config.TokenIssuers == "" {
		return
	}
	list, err := issuer.Read(d.Config.TokenIssuers, !d.Config.Production())
	if err != nil {
		if d.Fit == nil { // which reports it
			r.add(areaIssuers, Error, fmt.Sprintf("SECKILL_TOKEN_ISSUERS: %v", err))
		}
		return
	}
	for _, i := range list {
		keys, err := issuer.Keys(ctx, i)
		switch {
		case err != nil:
			r.add(areaIssuers, Error, fmt.Sprintf("the keys of %s cannot be read at %s: %v", i.Issuer, i.JWKS, err))
		case keys == 0:
			r.add(areaIssuers, Error, fmt.Sprintf("%s publishes no key at %s that can verify tokens", i.Issuer, i.JWKS))
		default:
			r.add(areaIssuers, OK, fmt.Sprintf("%d keys of %s can verify tokens", keys, i.Issuer))
		}
	}
}
