package app

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"seckill/internal/app/server"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/admission/risk"
	"seckill/internal/buy/checkout"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/member"
	"seckill/internal/buy/salestats"
	"seckill/internal/buy/storefront"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/account"
	"seckill/internal/identity/person"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/accent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
	"seckill/web"
)

// shop holds the use cases of buyers.
type shop struct {
	store    *storefront.Storefront
	checkout *checkout.Checkout
	book     *recipient.Book
	members  *member.Service
}

// shopParts are the stages that only the shop needs.
type shopParts struct {
	orders    orders
	admission admission
	waiting   waiting
	directory *account.Directory
	persons   person.Hasher
	members   *member.Service
}

func newShop(b base, g gates, m messages, s stats, in shopParts) shop {
	tries := checkout.NewTries(b.clock, rateLimits(b.cfg)["placeOrder"])
	if !b.cfg.LimitsOn() {
		tries = checkout.NoLimit()
	}
	book := recipient.NewBook(b.svc.db, b.clock, b.scaled(recipient.CheckTimeout))
	return shop{
		book: book, members: in.members,
		store: storefront.New(storefront.Config{
			Catalog: g.catalog, Stock: g.stock, Gate: g.gate, Orders: in.orders.store,
			Waitlist: in.waiting.service, Queue: in.admission.queue, Members: in.members,
			RestockOutlooks: in.waiting.restockOutlooks, Hub: m.hub,
		}),
		checkout: checkout.New(checkout.Config{
			Catalog: g.catalog, Stock: g.stock, Gate: g.gate, Orders: in.orders.store,
			Paths: in.admission.paths, Queue: in.admission.queue, Waitlist: in.waiting.service,
			Restock: in.waiting.restockOutlooks, Tries: tries,
			Risk: in.admission.risk, Book: book,
			Observer: observer{s.counts}, Users: in.directory, Persons: in.persons, Members: in.members,
			Codes: b.codes,
		}),
	}
}

// observer counts what checkout reports.
type observer struct{ counts *salestats.Recorder }

// Placed implements checkout.Observer.
func (o observer) Placed(of id.Sale, in checkout.Attempt, out checkout.Result, took time.Duration, err error) {
	o.counts.Placed(salestats.Placement{Sale: of, User: in.User, Item: in.Item, Took: took, Replayed: out.Replayed,
		Err: err})
}

// PathIssued implements checkout.Observer.
func (o observer) PathIssued(of id.Sale) { o.counts.Stepped(of, salestats.StepPath, 1) }

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
		Client: b.svc.redis.Script, Keys: b.keys, Secret: keys.Derive("captcha")[0], Kept: b.cfg.PathTTL,
		PowMax: b.cfg.PowMax, PoolSize: captchaPool(b.cfg), Wait: b.scaled(captcha.ImageWait), Clock: g.clock,
		Sales: rules, Counts: s.counts, SameForAll: !b.cfg.LimitsOn(), Outside: outsideCaptcha(b),
	})
	if err != nil {
		return admission{}, fmt.Errorf("captchas: %w", err)
	}
	tokens := path.NewTokens(keys.Derive("path tokens"))
	return admission{
		limits: limits, captchas: captchas, risk: newRisk(b),
		paths: path.New(path.Config{
			Client: b.svc.redis.Script, Keys: b.keys, Captchas: captchas, Tokens: tokens, Life: b.cfg.PathTTL,
			Ratio: b.cfg.PermitRatio,
		}),
		queue: queue.New(queue.Config{
			Client: b.svc.redis.Script, Keys: b.keys, Captchas: captchas, Tokens: tokens, Life: b.cfg.PathTTL,
			Sales: rules, Counts: s.counts, Notices: b.admitted,
		}),
	}, nil
}

// captchaPool returns how many images of each kind are drawn in advance: drawing those of an
// opening second costs some seconds of CPU, which a start in development shall not.
func captchaPool(cfg *config.Config) int {
	if cfg.CaptchaPool == 0 && !cfg.Production() {
		return 64
	}
	return cfg.CaptchaPool
}

// outsideCaptcha returns the captcha of another operator; nil = none.
func outsideCaptcha(b base) *captcha.Outside {
	cfg := b.cfg
	if cfg.CaptchaVerifyURL == "" {
		return nil
	}
	return &captcha.Outside{
		VerifyURL: cfg.CaptchaVerifyURL, SiteKey: cfg.CaptchaSiteKey, Secret: cfg.CaptchaSecret.Reveal(),
		ScriptURL: cfg.CaptchaScriptURL,
		Timeout:   b.scaled(captcha.OutsideTimeout),
	}
}

func newRisk(b base) *risk.Hook {
	if b.cfg.RiskURL == "" {
		return nil
	}
	hook := risk.New(risk.Config{URL: b.cfg.RiskURL, Timeout: b.cfg.RiskTimeout,
		FailClosed: b.cfg.RiskFailure == config.RiskFailureClosed, Registerer: b.registry})
	b.svc.onClose(func() error {
		hook.Close()
		return nil
	})
	return hook
}

// rateLimits returns the rate limits of operations that the settings name.
func rateLimits(cfg *config.Config) map[string]ratelimit.Policy {
	limits := map[string]ratelimit.Policy{}
	for _, l := range cfg.RateLimits {
		limits[l.Operation] = ratelimit.Policy{Name: l.Operation, Burst: l.Burst, PerSecond: l.PerSecond}
	}
	return limits
}

// waiting holds the waitlist and the forecast of units that may return to stock.
type waiting struct {
	service         *waitlist.Service
	restockOutlooks *waitlist.RestockOutlooks
}

// waitlistParts are the stages that only the waitlist needs.
type waitlistParts struct {
	captchas *captcha.Service
	signer   *acceptance.Signer // of what is published of draws
}

func newWaitlist(b base, g gates, o orders, in waitlistParts) (waiting, error) {
	relays, err := drawRelays(b)
	if err != nil {
		return waiting{}, err
	}
	service := waitlist.New(waitlist.Config{
		DB: b.svc.db, Gate: g.gate, Captchas: in.captchas, Publish: o.status.WaitlistEntries, Notices: b.notices,
		Registerer: b.registry, OfferFor: b.cfg.WaitlistOffer, Relays: relays,
		Operators: !b.svc.embedded && slices.Contains(b.cfg.DrawRelays, operatorDraws),
		Sign:      func(c draw.Commitment) (string, error) { return in.signer.SignAs(draw.CommitmentType, c) },
		Timeout:   b.scaled(waitlist.DefaultTimeout),
		Clock:     g.clock, Shared: g.clock, Log: b.log,
	})
	return waiting{
		service: service,
		restockOutlooks: waitlist.NewRestockOutlooks(service, waitlist.CatalogItems{Catalog: g.catalog, Stock: g.stock},
			b.log),
	}, nil
}

// localDraws is the setting of an installation that reaches no relay.
const localDraws = "local"

// operatorDraws is the setting of one whose operators enter the values of draws.
const operatorDraws = "operator"

// drawRelays returns the relays of the beacon; nil = the random values of draws have another source.
func drawRelays(b base) (*draw.Relays, error) {
	if b.svc.embedded || slices.Contains(b.cfg.DrawRelays, localDraws) ||
		slices.Contains(b.cfg.DrawRelays, operatorDraws) {
		return nil, nil
	}
	relays, err := draw.NewRelays(draw.Quicknet(), b.cfg.DrawRelays, &http.Client{}, b.log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.Name("draw-relays"), err)
	}
	return relays, nil
}

// site and trialSite are packed once per binary, because tests build many processes.
var (
	site      = sync.OnceValues(func() (http.Handler, error) { return server.NewSite(web.Dist(), web.Version()) })
	trialSite = sync.OnceValues(func() (http.Handler, error) { return server.NewSite(web.Trial(), web.Version()) })
)

// newSite returns the handler of the shop's pages, with the brand of the installation.
func newSite(cfg *config.Config, brand web.Brand) (http.Handler, error) {
	packed, built := site, web.Dist
	if cfg.Production() && cfg.Sandbox == config.SandboxTrial {
		packed, built = trialSite, web.Trial
	}
	if brand.IsZero() {
		return packed()
	}
	pages, err := brand.Of(built())
	if err != nil {
		return nil, err
	}
	return server.NewSite(pages, web.Version())
}

// brandOf reads what the settings say of the shop's look.
func brandOf(cfg *config.Config) (web.Brand, error) {
	brand := web.Brand{Name: cfg.ShopName}
	var err error
	if cfg.ThemeAccent != "" {
		if brand.Accent, err = accent.Parse(cfg.ThemeAccent); err != nil {
			return brand, fmt.Errorf("%s %w", config.Name("shop.accent"), err)
		}
	}
	if cfg.ThemeLogo != "" {
		if brand.Logo, err = web.ReadLogo(cfg.ThemeLogo); err != nil {
			return brand, fmt.Errorf("%s: %w", config.Name("shop.logo"), err)
		}
	}
	if cfg.ThemeLogoDark != "" {
		if brand.LogoDark, err = web.ReadLogo(cfg.ThemeLogoDark); err != nil {
			return brand, fmt.Errorf("%s: %w", config.Name("shop.logo-dark"), err)
		}
	}
	return brand, nil
}
