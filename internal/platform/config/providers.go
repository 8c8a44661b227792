package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Providers are the settings of payment providers. docs/payments.md explains them.
type Providers struct {
	Sandbox Sandbox `default:"off" group:"payments" help:"The built-in bank that approves whatever its visitor wants: on, trial, or off. Always on outside production; in production choose trial, which says on every page that no money moves."`

	StripeKey           Secret `name:"payments.stripe.key" aliases:"stripe-key" group:"payments" placeholder:"KEY" help:"Secret or restricted key of a Stripe account, sk_… or rk_…: cards are taken then. docs/payments.md."`
	StripeWebhookSecret Secret `name:"payments.stripe.webhook-secret" aliases:"stripe-webhook-secret" group:"payments" placeholder:"SECRET" help:"Signing secret, whsec_…, of the Stripe endpoint that sends its events to /webhooks/payments/stripe."`
	StripeAPIURL        string `hidden:"" name:"payments.stripe.api-url" aliases:"stripe-api-url" group:"payments" placeholder:"URL" help:"Where Stripe's API is, for tests. Without it, Stripe's own address."`

	StripePublishableKey string   `name:"payments.stripe.publishable-key" aliases:"stripe-publishable-key" group:"payments" placeholder:"KEY" help:"Publishable key of the account, pk_…: cards are then taken on the page of the order, by Stripe's Payment Element, instead of a page of Stripe. Pages that take a payment load from Stripe then."`
	StripeScriptURL      string   `hidden:"" name:"payments.stripe.script-url" aliases:"stripe-script-url" default:"https://js.stripe.com/dahlia/stripe.js" group:"payments" help:"Where Stripe.js is. Stripe wants it loaded from its own address; another one is for tests."`
	StripeOrigins        []string `name:"payments.stripe.origins" aliases:"stripe-origins" default:"https://*.js.stripe.com,https://hooks.stripe.com,https://api.stripe.com" group:"payments" help:"Origins, besides that of the script, that Stripe.js loads, frames and calls. Only the page of an order may do so, and only with a publishable key."`

	WeChatMerchantID     string `name:"payments.wechat.merchant-id" aliases:"wechat-merchant-id" group:"payments" placeholder:"ID" help:"Merchant number at WeChat Pay: buyers pay by WeChat then, in CNY."`
	WeChatAppID          string `name:"payments.wechat.app-id" aliases:"wechat-app-id" group:"payments" placeholder:"ID" help:"App id, wx…, that is bound to the merchant."`
	WeChatMerchantSerial string `name:"payments.wechat.merchant-serial" aliases:"wechat-merchant-serial" group:"payments" placeholder:"HEX" help:"Serial number of the merchant's API certificate."`
	WeChatMerchantKey    Secret `name:"payments.wechat.merchant-key" aliases:"wechat-merchant-key" group:"payments" placeholder:"PEM" help:"Private key of that certificate, apiclient_key.pem; best as merchant_key_file."`
	WeChatAPIKey         Secret `name:"payments.wechat.api-key" aliases:"wechat-api-key" group:"payments" placeholder:"KEY" help:"APIv3 key, 32 characters: notices are encrypted with it."`
	WeChatPlatformKey    Secret `name:"payments.wechat.platform-key" aliases:"wechat-platform-key" group:"payments" placeholder:"PEM" help:"Public key of WeChat Pay, or its platform certificates, which verify what WeChat Pay sends; best as platform_key_file."`
	WeChatPlatformKeyID  string `name:"payments.wechat.platform-key-id" aliases:"wechat-platform-key-id" group:"payments" placeholder:"ID" help:"Id of the public key, PUB_KEY_ID_…. Leave it out for certificates."`
	WeChatH5             Switch `name:"payments.wechat.h5" aliases:"wechat-h5" default:"off" group:"payments" help:"Links for phones (H5), which WeChat Pay grants on application: on, or off."`
	WeChatAPIURL         string `hidden:"" name:"payments.wechat.api-url" aliases:"wechat-api-url" group:"payments" placeholder:"URL" help:"Where the API of WeChat Pay is, for tests. Without it, WeChat Pay's own address."`

	AlipayAppID     string `name:"payments.alipay.app-id" aliases:"alipay-app-id" group:"payments" placeholder:"ID" help:"Id of the application at Alipay: buyers pay by Alipay then, in CNY."`
	AlipayKey       Secret `name:"payments.alipay.key" aliases:"alipay-key" group:"payments" placeholder:"PEM" help:"Private key of the application; best as key_file."`
	AlipayPublicKey Secret `name:"payments.alipay.public-key" aliases:"alipay-public-key" group:"payments" placeholder:"PEM" help:"Alipay's public key, not that of the application: it verifies what Alipay sends."`
	AlipayWAP       Switch `name:"payments.alipay.wap" aliases:"alipay-wap" default:"off" group:"payments" help:"Pages for phones (mobile website payment), which have a contract of their own: on, or off."`
	AlipayAPIURL    string `name:"payments.alipay.api-url" aliases:"alipay-api-url" group:"payments" placeholder:"URL" help:"Alipay's gateway, for its sandbox. Without it, the production gateway."`

	PaymentServiceURL        string `name:"payments.service.url" aliases:"payment-service-url" group:"payments" placeholder:"URL" help:"A payment service of yours, which is called by signed HTTP: docs/payments.md has the protocol."`
	PaymentServiceSecret     Secret `name:"payments.service.secret" aliases:"payment-service-secret" group:"payments" placeholder:"SECRET" help:"Secret that the payment service and the shop sign with: whsec_ and at least 24 bytes in base64."`
	PaymentServiceName       string `name:"payments.service.name" aliases:"payment-service-name" default:"service" group:"payments" help:"Its name in the database and in the address of its webhooks: a-z, 0-9 and dashes. Do not change it while payments are open."`
	PaymentServiceLabel      string `name:"payments.service.label" aliases:"payment-service-label" default:"Bank transfer" group:"payments" help:"Its name for buyers."`
	PaymentServiceKind       string `name:"payments.service.kind" aliases:"payment-service-kind" default:"redirect" enum:"redirect,qr" group:"payments" help:"How a buyer pays: redirect, or qr."`
	PaymentServiceCurrencies string `name:"payments.service.currencies" aliases:"payment-service-currencies" group:"payments" placeholder:"LIST" help:"Currencies that it takes, with their least and greatest amounts in minor units: EUR=100,USD=50:500000. Without it, any amount in any currency."`
}

// Sandbox selects whether the built-in bank can be paid at.
type Sandbox string

// Values of Sandbox.
const (
	SandboxOn    Sandbox = "on"
	SandboxTrial Sandbox = "trial" // on, and every page says that no money moves
	SandboxOff   Sandbox = "off"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sandbox) UnmarshalText(text []byte) error {
	return oneOf(s, text, SandboxOn, SandboxTrial, SandboxOff)
}

// SandboxOn reports whether orders can be paid with the built-in bank.
func (c *Config) SandboxOn() bool { return c.Sandbox != SandboxOff || !c.Production() }

// PaymentsOn reports whether orders can be paid at all.
func (c *Config) PaymentsOn() bool {
	return c.SandboxOn() || c.StripeKey != "" || c.WeChatMerchantID != "" || c.AlipayAppID != "" ||
		c.PaymentServiceURL != ""
}

// Bounds are the least and the greatest amount that a provider takes, in minor units; 0 =
// no greatest.
type Bounds struct{ Least, Most int64 }

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// ServiceCurrencies returns the amounts that the payment service takes; nil = any.
func (c *Config) ServiceCurrencies() (map[string]Bounds, error) {
	if c.PaymentServiceCurrencies == "" {
		return nil, nil
	}
	taken := map[string]Bounds{}
	for entry := range strings.SplitSeq(c.PaymentServiceCurrencies, ",") {
		code, amounts, _ := strings.Cut(strings.TrimSpace(entry), "=")
		least, most, bounded := strings.Cut(amounts, ":")
		var b Bounds
		var err error
		if b.Least, err = strconv.ParseInt(least, 10, 64); err == nil && bounded {
			b.Most, err = strconv.ParseInt(most, 10, 64)
		}
		if err != nil || !currencyCode.MatchString(code) || b.Least < 1 || b.Most < 0 || b.Most != 0 && b.Most < b.Least {
			return nil, fmt.Errorf("%q is not of the form EUR=100 or EUR=100:500000", strings.TrimSpace(entry))
		}
		taken[code] = b
	}
	return taken, nil
}

// leastServiceSecret is what the Standard Webhooks specification requires, in bytes.
const leastServiceSecret = 24

// ServiceSecret returns the bytes of the payment service's secret.
func (c *Config) ServiceSecret() ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.PaymentServiceSecret.Reveal(), "whsec_"))
	if err != nil || len(secret) < leastServiceSecret {
		return nil, errors.New("is not whsec_ and at least 24 bytes in base64: openssl rand -base64 32")
	}
	return secret, nil
}

// apiKeyBytes is the length of WeChat Pay's APIv3 key, a key of AES-256.
const apiKeyBytes = 32

var serviceName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){0,31}$`)

// reservedNames are those of the other providers.
var reservedNames = []string{"sandbox", "stripe", "wechat", "wechat-h5", "alipay", "alipay-wap"}

// payments checks the keys of payment providers, which are not printed.
func (p *Problems) payments(c *Config) {
	key, secret := c.StripeKey.Reveal(), c.StripeWebhookSecret.Reveal()
	if key != "" && !strings.HasPrefix(key, "sk_") && !strings.HasPrefix(key, "rk_") {
		p.add("payments.stripe.key", "is no secret key: take the one that begins with sk_ or rk_; pk_ is for browsers")
	}
	if (key == "") != (secret == "") {
		p.add("payments.stripe.webhook-secret",
			"and payments.stripe.key go together: without the key nothing is charged, without the secret no payment is reported")
	}
	if k := c.StripePublishableKey; k != "" && (key == "" || !strings.HasPrefix(k, "pk_")) {
		p.add("payments.stripe.publishable-key", "is no publishable key, pk_…, or payments.stripe.key is missing")
	}
	if k := c.StripePublishableKey; k != "" && strings.Contains(k, "_live_") != strings.Contains(key, "_live_") {
		p.add("payments.stripe.publishable-key",
			"and payments.stripe.key are of different modes: take both from test mode, or both from live mode")
	}
	p.forTests(c, "payments.stripe.api-url", c.StripeAPIURL, "")
	p.forTests(c, "payments.stripe.script-url", c.StripeScriptURL, stripeScript)
	p.forTests(c, "payments.wechat.api-url", c.WeChatAPIURL, "")
	for _, origin := range c.StripeOrigins {
		if !source.MatchString(origin) {
			p.add("payments.stripe.origins", "has %q, which is no origin: write https://host", origin)
		}
	}
	p.together(c.WeChatMerchantID, "payments.wechat.merchant-id", map[string]string{
		"payments.wechat.app-id": c.WeChatAppID, "payments.wechat.merchant-serial": c.WeChatMerchantSerial,
		"payments.wechat.merchant-key": c.WeChatMerchantKey.Reveal(),
		"payments.wechat.api-key":      c.WeChatAPIKey.Reveal(), "payments.wechat.platform-key": c.WeChatPlatformKey.Reveal(),
	})
	if n := len(c.WeChatAPIKey); n != 0 && n != apiKeyBytes {
		p.add("payments.wechat.api-key", "has %d characters: the APIv3 key has 32", n)
	}
	p.together(c.AlipayAppID, "payments.alipay.app-id", map[string]string{
		"payments.alipay.key": c.AlipayKey.Reveal(), "payments.alipay.public-key": c.AlipayPublicKey.Reveal(),
	})
	p.paymentService(c)
}

// stripeScript is the address from which Stripe wants its script to be loaded.
const stripeScript = "https://js.stripe.com/dahlia/stripe.js"

// forTests refuses another address of a provider in production, where it would receive the
// keys of the account.
func (p *Problems) forTests(c *Config, flag, address, usual string) {
	u, err := url.Parse(address)
	switch {
	case address == usual:
	case c.Production():
		p.add(flag, "is for tests, which production does not allow: leave it out")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		p.add(flag, "is no address: write https://host")
	}
}

// together requires the other settings of a provider that is set up, and refuses them
// without it.
func (p *Problems) together(first, flag string, others map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		switch other := others[name]; {
		case first != "" && other == "":
			p.add(name, "is missing, and %s needs it", Name(flag))
		case first == "" && other != "":
			p.add(flag, "is missing, and %s is set", Name(name))
		}
	}
}

func (p *Problems) paymentService(c *Config) {
	if c.PaymentServiceURL == "" {
		return
	}
	if u := p.readable("payments.service.url", c.PaymentServiceURL); u != nil && (u.Host == "" ||
		u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || strings.HasSuffix(u.Path, "/")) {
		p.add("payments.service.url", "is no address: write https://host/path without a slash at the end")
	}
	if _, err := c.ServiceSecret(); err != nil {
		p.add("payments.service.secret", "%v", err)
	}
	if !serviceName.MatchString(c.PaymentServiceName) || slices.Contains(reservedNames, c.PaymentServiceName) {
		p.add("payments.service.name", "is %q: take a-z, 0-9 and dashes, and not the name of another provider",
			c.PaymentServiceName)
	}
	if _, err := c.ServiceCurrencies(); err != nil {
		p.add("payments.service.currencies", "has an entry that is unfit: %v", err)
	}
}
