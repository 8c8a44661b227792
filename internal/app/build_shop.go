package app

import (
	"fmt"
	"net"

	"seckill/internal/account"
	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/admission/queue"
	"seckill/internal/admission/risk"
	"seckill/internal/auth"
	"seckill/internal/checkout"
	"seckill/internal/config"
	"seckill/internal/oidc"
	"seckill/internal/oidc/issuer"
	"seckill/internal/ratelimit"
	"seckill/internal/recipient"
	"seckill/internal/storefront"
)

// shop holds the use cases of buyers.
type shop struct {
	store    *storefront.Storefront
	checkout *checkout.Checkout
	book     *recipient.Book
}

// shopParts are the stages that only the shop needs.
type shopParts struct {
	orders    orders
	admission admission
	waiting   waiting
	directory *account.Directory
}

func newShop(b base, g gates, m messages, s stats, in shopParts) shop {
	tries := checkout.NewTries(b.clock, b.rateLimits()["placeOrder"])
	if !b.cfg.LimitsOn() {
		tries = checkout.NoLimit()
	}
	book := recipient.NewBook(b.svc.db, b.clock, b.scaled(recipient.CheckTimeout))
	return shop{
		book: book,
		store: storefront.New(storefront.Config{
			Catalog: g.catalog, Stock: g.stock, Gate: g.gate, Orders: in.orders.store,
			Waitlist: in.waiting.service, Queue: in.admission.queue, RestockOutlooks: in.waiting.restockOutlooks, Hub: m.hub,
		}),
		checkout: checkout.New(checkout.Config{
			Catalog: g.catalog, Stock: g.stock, Gate: g.gate, Orders: in.orders.store,
			Paths: in.admission.paths, Queue: in.admission.queue, Waitlist: in.waiting.service, Tries: tries, Risk: in.admission.risk, Book: book,
			Counts: s.counts, Users: in.directory,
		}),
	}
}

// admission holds the checks that a buyer passes before the gate.
type admission struct {
	limits   *ratelimit.Limiter
	captchas *captcha.Service
	paths    *path.Service
	queue    *queue.Service
	risk     *risk.Hook // nil = no service is asked
}

func newAdmission(b base, g gates, s stats, keys auth.Keys) (admission, error) {
	limits := ratelimit.New(ratelimit.Config{
		Client: b.svc.redis.Script, Prefix: b.keys.Prefix, Clock: b.clock, Off: !b.cfg.LimitsOn(), Registerer: b.registry,
	})
	rules := checkout.SaleRules{Catalog: g.catalog, Store: g.sales, PerMille: int(b.cfg.PermitRatio*1000 + 0.5)}
	captchas, err := captcha.New(captcha.Config{
		Client: b.svc.redis.Script, Keys: b.keys, Secret: keys.Derive("captcha")[0],
		Life: b.cfg.CaptchaTTL, PowMax: b.cfg.PowMax, PoolSize: b.cfg.CaptchaPool, Wait: b.scaled(captcha.ImageWait), Clock: b.clock,
		Sales: rules, Counts: s.counts, SameForAll: !b.cfg.LimitsOn(), Outside: outsideCaptcha(b),
	})
	if err != nil {
		return admission{}, fmt.Errorf("captchas: %w", err)
	}
	tokens := path.NewTokens(keys.Derive("path tokens"))
	return admission{
		limits: limits, captchas: captchas, risk: newRisk(b),
		paths: path.New(path.Config{
			Client: b.svc.redis.Script, Keys: b.keys, Captchas: captchas, Tokens: tokens, Life: b.cfg.PathTTL, Ratio: b.cfg.PermitRatio,
		}),
		queue: queue.New(queue.Config{
			Client: b.svc.redis.Script, Keys: b.keys, Captchas: captchas, Tokens: tokens, Life: b.cfg.PathTTL,
			Sales: rules, Counts: s.counts, Notices: b.admitted,
		}),
	}, nil
}

// outsideCaptcha returns the captcha of another operator; nil = none.
func outsideCaptcha(b base) *captcha.Outside {
	cfg := b.cfg
	if cfg.CaptchaVerifyURL == "" {
		return nil
	}
	return &captcha.Outside{
		VerifyURL: cfg.CaptchaVerifyURL, SiteKey: cfg.CaptchaSiteKey, Secret: cfg.CaptchaSecret.Reveal(), ScriptURL: cfg.CaptchaScriptURL,
		Timeout: b.scaled(captcha.OutsideTimeout),
	}
}

func newRisk(b base) *risk.Hook {
	if b.cfg.RiskURL == "" {
		return nil
	}
	hook := risk.New(risk.Config{URL: b.cfg.RiskURL, Timeout: b.cfg.RiskTimeout, FailClosed: b.cfg.RiskFailure == config.RiskFailureClosed, Registerer: b.registry})
	b.svc.onClose(func() error {
		hook.Close()
		return nil
	})
	return hook
}

// rateLimits returns the rate limits of operations that the settings name.
func (b base) rateLimits() map[string]ratelimit.Policy {
	limits := map[string]ratelimit.Policy{}
	for _, l := range b.cfg.RateLimits {
		limits[l.Operation] = ratelimit.Policy{Name: l.Operation, Burst: l.Burst, PerSecond: l.PerSecond}
	}
	return limits
}

// newProviders returns the sign-in with other providers; nil without the setting.
func newProviders(b base, in accounts, keys auth.Keys, l net.Listener) (*oidc.Service, error) {
	if b.cfg.OIDC == "" || !b.roles.API {
		return nil, nil //nolint:nilnil // no setting, no providers
	}
	providers, err := oidc.ReadProviders(b.cfg.OIDC, !b.cfg.Production())
	if err != nil {
		return nil, fmt.Errorf("SECKILL_OIDC: %w", err)
	}
	return oidc.New(oidc.Config{
		Providers: providers, Address: baseURL(b.cfg, l), Keys: keys, Accounts: in.service, Clock: b.clock, Log: b.log,
	}), nil
}

// newIssuers returns the verifier of access tokens of other systems; nil without the
// setting.
func newIssuers(b base, in accounts) (*issuer.Service, error) {
	if b.cfg.TokenIssuers == "" || !b.roles.API {
		return nil, nil //nolint:nilnil // no setting, no issuers
	}
	issuers, err := issuer.Read(b.cfg.TokenIssuers, !b.cfg.Production())
	if err != nil {
		return nil, fmt.Errorf("SECKILL_TOKEN_ISSUERS: %w", err)
	}
	s, err := issuer.New(issuer.Config{
		Issuers: issuers, Accounts: in.service, Sessions: in.revocations, Roles: in.directory,
		Cached: b.cfg.AccessTokenTTL, Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return nil, err
	}
	b.svc.onClose(s.Close)
	return s, nil
}
