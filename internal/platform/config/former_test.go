package config

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// constants are the settings of the previous release that are constants now.
var constants = []string{
	"captcha-pool", "captcha-ttl", "claim-idle", "drain-delay", "load-slot", "load-slots", "order-batch", "preload-every",
	"push-services", "user-sockets",
}

// moved maps the other old names to the new ones.
var moved = map[string]string{
	"stripe-key":                 "payments.stripe.key",
	"stripe-webhook-secret":      "payments.stripe.webhook-secret",
	"stripe-api-url":             "payments.stripe.api-url",
	"stripe-publishable-key":     "payments.stripe.publishable-key",
	"stripe-script-url":          "payments.stripe.script-url",
	"stripe-origins":             "payments.stripe.origins",
	"wechat-merchant-id":         "payments.wechat.merchant-id",
	"wechat-app-id":              "payments.wechat.app-id",
	"wechat-merchant-serial":     "payments.wechat.merchant-serial",
	"wechat-merchant-key":        "payments.wechat.merchant-key",
	"wechat-api-key":             "payments.wechat.api-key",
	"wechat-platform-key":        "payments.wechat.platform-key",
	"wechat-platform-key-id":     "payments.wechat.platform-key-id",
	"wechat-h5":                  "payments.wechat.h5",
	"wechat-api-url":             "payments.wechat.api-url",
	"alipay-app-id":              "payments.alipay.app-id",
	"alipay-key":                 "payments.alipay.key",
	"alipay-public-key":          "payments.alipay.public-key",
	"alipay-wap":                 "payments.alipay.wap",
	"alipay-api-url":             "payments.alipay.api-url",
	"payment-service-url":        "payments.service.url",
	"payment-service-secret":     "payments.service.secret",
	"payment-service-name":       "payments.service.name",
	"payment-service-label":      "payments.service.label",
	"payment-service-kind":       "payments.service.kind",
	"payment-service-currencies": "payments.service.currencies",
	"shop-name":                  "shop.name", "theme-accent": "shop.accent", "theme-logo": "shop.logo", "theme-logo-dark": "shop.logo-dark",
	"seller-name": "shop.seller-name", "seller-details": "shop.seller-details", "seller-tax-name": "shop.tax-name", "seller-tax-rate": "shop.tax-rate",
	"captcha-verify-url": "captcha.verify-url",
	"captcha-site-key":   "captcha.site-key",
	"captcha-secret":     "captcha.secret",
	"captcha-script-url": "captcha.script-url",
	"captcha-origins":    "captcha.origins",
}

// former returns the settings of a command line, and its lines about old names.
func former(t *testing.T, args []string, lookup func(string) (string, bool)) ([]Setting, []string) {
	t.Helper()
	source := NewSource(lookup)
	_, ctx, err := parse(args, Options(source)...)
	if err != nil || len(source.Problems()) > 0 {
		t.Fatal(err, source.Problems())
	}
	return source.Settings(ctx), source.Former(ctx)
}

func TestFormerSettingsAreKnown(t *testing.T) {
	t.Parallel()
	_, ctx, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	gotMoved, gotConstants := map[string]string{}, []string{}
	for _, flag := range ctx.Model.Flags {
		for _, alias := range flag.Aliases {
			gotMoved[alias] = flag.Name
		}
		if constant(flag) != "" {
			gotConstants = append(gotConstants, flag.Name)
		}
	}
	if diff := gocmp.Diff(moved, gotMoved); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(constants, gotConstants); diff != "" {
		t.Errorf("constants (-want +got):\n%s", diff)
	}
}

func TestFormerConstantsAreIgnoredAndReportedOnce(t *testing.T) {
	t.Parallel()
	defaults, _ := former(t, nil, env())
	for _, old := range constants {
		file := write(t, fileKey(old)+" = 7\n")
		for used, in := range map[string]struct {
			args   []string
			lookup func(string) (string, bool)
		}{
			EnvName(old):               {nil, env(EnvName(old), "7")},
			file + ": " + fileKey(old): {[]string{"--config", file}, env()},
			"--" + old:                 {[]string{"--" + old, "7"}, env()},
		} {
			settings, lines := former(t, in.args, in.lookup)
			if len(lines) != 1 || !strings.HasPrefix(lines[0], used+" is no longer a setting and is ignored: ") {
				t.Errorf("%s: %q", used, lines)
			}
			if diff := gocmp.Diff(defaults[1:], settings[1:]); diff != "" {
				t.Errorf("%s changes the settings (-default +got):\n%s", used, diff)
			}
		}
		if got := UnknownVariables([]string{EnvName(old) + "=7"}); got != nil {
			t.Errorf("unknown: %q", got)
		}
	}
}

func TestOldNamesAreObeyedAndReportedOnce(t *testing.T) {
	t.Parallel()
	values := map[string]string{"payments.wechat.h5": "on", "payments.alipay.wap": "on", "payments.service.kind": "qr"}
	for old, flag := range moved {
		value := cmp.Or(values[flag], "https://value.example")
		file := write(t, fileKey(old)+" = '"+value+"'\n")
		for used, in := range map[string]struct {
			args   []string
			lookup func(string) (string, bool)
			origin Origin
		}{
			EnvName(old):               {nil, env(EnvName(old), value), Origin(EnvName(old))},
			file + ": " + fileKey(old): {[]string{"--config", file}, env(), Origin(file)},
			"--" + old:                 {[]string{"--" + old, value}, env(), OriginFlag},
		} {
			settings, lines := former(t, in.args, in.lookup)
			if want := used + " is an old name: write " + fileKey(flag); !slices.Equal(lines, []string{want}) {
				t.Errorf("%q, want %q", lines, want)
			}
			got := find(t, settings, flag)
			if got.Origin != in.origin || got.Value != value && got.Value != Secret(value).String() {
				t.Errorf("%s: %s is %q from %q", used, flag, got.Value, got.Origin)
			}
			if !got.Secret || in.origin != Origin(EnvName(old)) {
				continue
			}
			settings, lines = former(t, nil, env(EnvName(old)+"_FILE", write(t, value)))
			if want := EnvName(old) + "_FILE is an old name: write " + fileKey(flag) + "_file"; !slices.Equal(lines, []string{want}) {
				t.Errorf("%q, want %q", lines, want)
			}
			if got := find(t, settings, flag); got.Origin != Origin(EnvName(old)+"_FILE") {
				t.Errorf("%s is from %q", flag, got.Origin)
			}
		}
		if got := UnknownVariables([]string{EnvName(old) + "=x"}); got != nil {
			t.Errorf("unknown: %q", got)
		}
	}
}

func TestANewNameWinsOverAnOldOneOfTheSamePlace(t *testing.T) {
	t.Parallel()
	file := write(t, "stripe_key = 'old'\n[payments.stripe]\nkey = 'new'\npublishable_key = 'new'\n")
	c, _, err := Parse([]string{"--config", file}, env("SECKILL_STRIPE_PUBLISHABLE_KEY", "of the environment"))
	if err != nil || c.StripeKey != "new" || c.StripePublishableKey != "of the environment" {
		t.Errorf("%q %q %v", c.StripeKey.Reveal(), c.StripePublishableKey, err)
	}
}

func TestATableIsNoVariable(t *testing.T) {
	t.Parallel()
	c, _, err := Parse(nil, env("SECKILL_PAYMENTS.STRIPE.KEY", "x", "SECKILL_PAYMENTS_STRIPE_KEY", "x"))
	if err != nil || c.StripeKey != "" {
		t.Errorf("%q %v", c.StripeKey.Reveal(), err)
	}
}
