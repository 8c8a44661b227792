package app

import (
	"fmt"

	"github.com/google/uuid"

	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/admission/queue"
	"seckill/internal/admission/risk"
	"seckill/internal/auth"
	"seckill/internal/checkout"
	"seckill/internal/config"
	"seckill/internal/ratelimit"
	"seckill/internal/salestats"
)

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
	captchas, err := captcha.New(captcha.Config{
		Client: b.svc.redis.Script, Keys: b.keys, Secret: keys.Derive("captcha")[0],
		Life: b.cfg.CaptchaTTL, PowMax: b.cfg.PowMax, PoolSize: b.cfg.CaptchaPool, Clock: b.clock,
		Rules: checkout.CaptchaRules(g.catalog), SameForAll: !b.cfg.LimitsOn(),
		Posed: func(sale uuid.UUID) { s.counts.Stepped(sale, salestats.StepCaptcha, 1) }, Outside: outsideCaptcha(b.cfg),
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
			Rules: checkout.QueueRules(g.catalog, int(b.cfg.PermitRatio*1000+0.5)), Gone: g.sales.Gone,
			Closed:   s.closed,
			Admitted: func(sale uuid.UUID, n int) { s.counts.Stepped(sale, salestats.StepPath, n) },
		}),
	}, nil
}

// outsideCaptcha returns the captcha of another operator; nil = none.
func outsideCaptcha(cfg *config.Config) *captcha.Outside {
	if cfg.CaptchaVerifyURL == "" {
		return nil
	}
	return &captcha.Outside{
		VerifyURL: cfg.CaptchaVerifyURL, SiteKey: cfg.CaptchaSiteKey, Secret: cfg.CaptchaSecret.Reveal(), ScriptURL: cfg.CaptchaScriptURL,
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
