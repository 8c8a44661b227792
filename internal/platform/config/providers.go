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

	StripeKey           Secret `group:"payments" placeholder:"KEY" help:"Secret or restricted key of a Stripe account, sk_… or rk_…: cards are taken then. docs/payments.md."`
	StripeWebhookSecret Secret `group:"payments" placeholder:"SECRET" help:"Signing secret, whsec_…, of the Stripe endpoint that sends its events to /webhooks/payments/stripe."`
	StripeAPIURL        string `name:"stripe-api-url" group:"payments" placeholder:"URL" help:"Where Stripe's API is, for tests. Without it, Stripe's own address."`

	StripePublishableKey string   `group:"payments" placeholder:"KEY" help:"Publishable key of the account, pk_…: cards are then taken on the page of the order, by Stripe's Payment Element, instead of a page of Stripe. Pages that take a payment load from Stripe then."`
	StripeScriptURL      string   `name:"stripe-script-url" default:"https://js.stripe.com/basil/stripe.js" group:"payments" help:"Where Stripe.js is. Stripe wants it loaded from its own address; another one is for tests."`
	StripeOrigins        []string `default:"https://*.js.stripe.com,https://hooks.stripe.com,https://api.stripe.com" group:"payments" help:"Origins, besides that of the script, that Stripe.js loads, frames and calls. Only the page of an order may do so, and only with a publishable key."`

	WeChatMerchantID     string `name:"wechat-merchant-id" group:"payments" placeholder:"ID" help:"Merchant number at WeChat Pay: buyers pay by WeChat then, in CNY."`
	WeChatAppID          string `name:"wechat-app-id" group:"payments" placeholder:"ID" help:"App id, wx…, that is bound to the merchant."`
	WeChatMerchantSerial string `name:"wechat-merchant-serial" group:"payments" placeholder:"HEX" help:"Serial number of the merchant's API certificate."`
	WeChatMerchantKey    Secret `name:"wechat-merchant-key" group:"payments" placeholder:"PEM" help:"Private key of that certificate, apiclient_key.pem; best as SECKILL_WECHAT_MERCHANT_KEY_FILE."`
	WeChatAPIKey         Secret `name:"wechat-api-key" group:"payments" placeholder:"KEY" help:"APIv3 key, 32 characters: notices are encrypted with it."`
	WeChatPlatformKey    Secret `name:"wechat-platform-key" group:"payments" placeholder:"PEM" help:"Public key of WeChat Pay, or its platform certificates, which verify what WeChat Pay sends; best as SECKILL_WECHAT_PLATFORM_KEY_FILE."`
	WeChatPlatformKeyID  string `name:"wechat-platform-key-id" group:"payments" placeholder:"ID" help:"Id of the public key, PUB_KEY_ID_…. Leave it out for certificates."`
	WeChatH5             Switch `name:"wechat-h5" default:"off" group:"payments" help:"Links for phones (H5), which WeChat Pay grants on application: on, or off."`
	WeChatAPIURL         string `name:"wechat-api-url" group:"payments" placeholder:"URL" help:"Where the API of WeChat Pay is, for tests. Without it, WeChat Pay's own address."`

	AlipayAppID     string `name:"alipay-app-id" group:"payments" placeholder:"ID" help:"Id of the application at Alipay: buyers pay by Alipay then, in CNY."`
	AlipayKey       Secret `name:"alipay-key" group:"payments" placeholder:"PEM" help:"Private key of the application; best as SECKILL_ALIPAY_KEY_FILE."`
	AlipayPublicKey Secret `name:"alipay-public-key" group:"payments" placeholder:"PEM" help:"Alipay's public key, not that of the application: it verifies what Alipay sends."`
	AlipayWAP       Switch `name:"alipay-wap" default:"off" group:"payments" help:"Pages for phones (mobile website payment), which have a contract of their own: on, or off."`
	AlipayAPIURL    string `name:"alipay-api-url" group:"payments" placeholder:"URL" help:"Alipay's gateway, for its sandbox and for tests. Without it, the production gateway."`

	PaymentServiceURL        string `name:"payment-service-url" group:"payments" placeholder:"URL" help:"A payment service of yours, which is called by signed HTTP: docs/payments.md has the protocol."`
	PaymentServiceSecret     Secret `group:"payments" placeholder:"SECRET" help:"Secret that the payment service and the shop sign with: whsec_ and at least 24 bytes in base64."`
	PaymentServiceName       string `default:"service" group:"payments" help:"Its name in the database and in the address of its webhooks: a-z, 0-9 and dashes. Do not change it while payments are open."`
	PaymentServiceLabel      string `default:"Bank transfer" group:"payments" help:"Its name for buyers."`
	PaymentServiceKind       string `default:"redirect" enum:"redirect,qr" group:"payments" help:"How a buyer pays: redirect, or qr."`
	PaymentServiceCurrencies string `group:"payments" placeholder:"LIST" help:"Currencies that it takes, with their least and greatest amounts in minor units: EUR=100,USD=50:500000. Without it, any amount in any currency."`
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
	return c.SandboxOn() || c.StripeKey != "" || c.WeChatMerchantID != "" || c.AlipayAppID != "" || c.PaymentServiceURL != ""
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
		p.add("stripe-key", "is no secret key: take the one that begins with sk_ or rk_; pk_ is for browsers")
	}
	if (key == "") != (secret == "") {
		p.add("stripe-webhook-secret", "and SECKILL_STRIPE_KEY go together: without the key nothing is charged, without the secret no payment is reported")
	}
	if k := c.StripePublishableKey; k != "" && (key == "" || !strings.HasPrefix(k, "pk_")) {
		p.add("stripe-publishable-key", "is no publishable key, pk_…, or SECKILL_STRIPE_KEY is missing")
	}
	if k := c.StripePublishableKey; k != "" && strings.Contains(k, "_live_") != strings.Contains(key, "_live_") {
		p.add("stripe-publishable-key", "and SECKILL_STRIPE_KEY are of different modes: take both from test mode, or both from live mode")
	}
	if u, err := url.Parse(c.StripeScriptURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		p.add("stripe-script-url", "is no address: write https://host/path")
	}
	for _, origin := range c.StripeOrigins {
		if !source.MatchString(origin) {
			p.add("stripe-origins", "has %q, which is no origin: write https://host", origin)
		}
	}
	addresses := map[string]string{"stripe-api-url": c.StripeAPIURL, "wechat-api-url": c.WeChatAPIURL}
	for _, flag := range slices.Sorted(maps.Keys(addresses)) {
		if at := addresses[flag]; at != "" && !isOrigin(at) {
			p.add(flag, "is no address: write https://host")
		}
	}
	p.together(c.WeChatMerchantID, "wechat-merchant-id", map[string]string{
		"wechat-app-id": c.WeChatAppID, "wechat-merchant-serial": c.WeChatMerchantSerial, "wechat-merchant-key": c.WeChatMerchantKey.Reveal(),
		"wechat-api-key": c.WeChatAPIKey.Reveal(), "wechat-platform-key": c.WeChatPlatformKey.Reveal(),
	})
	if n := len(c.WeChatAPIKey); n != 0 && n != apiKeyBytes {
		p.add("wechat-api-key", "has %d characters: the APIv3 key has 32", n)
	}
	p.together(c.AlipayAppID, "alipay-app-id", map[string]string{
		"alipay-key": c.AlipayKey.Reveal(), "alipay-public-key": c.AlipayPublicKey.Reveal(),
	})
	if rate := c.SellerTaxRate; rate != "" && (!taxRate.MatchString(rate) || c.SellerTaxName == "") {
		p.add("seller-tax-rate", "is %q: write a rate in percent, 19 or 8.1, and the name of the tax in SECKILL_SELLER_TAX_NAME", rate)
	}
	p.paymentService(c)
}

var taxRate = regexp.MustCompile(`^\d{1,2}(\.\d{1,2})?$`)

// together requires the other settings of a provider that is set up, and refuses them
// without it.
func (p *Problems) together(first, flag string, others map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		switch other := others[name]; {
		case first != "" && other == "":
			p.add(name, "is missing, and %s needs it", EnvName(flag))
		case first == "" && other != "":
			p.add(flag, "is missing, and %s is set", EnvName(name))
		}
	}
}

func (p *Problems) paymentService(c *Config) {
	if c.PaymentServiceURL == "" {
		return
	}
	if u, err := url.Parse(c.PaymentServiceURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || strings.HasSuffix(u.Path, "/") {
		p.add("payment-service-url", "is no address: write https://host/path without a slash at the end")
	}
	if _, err := c.ServiceSecret(); err != nil {
		p.add("payment-service-secret", "%v", err)
	}
	if !serviceName.MatchString(c.PaymentServiceName) || slices.Contains(reservedNames, c.PaymentServiceName) {
		p.add("payment-service-name", "is %q: take a-z, 0-9 and dashes, and not the name of another provider", c.PaymentServiceName)
	}
	if _, err := c.ServiceCurrencies(); err != nil {
		p.add("payment-service-currencies", "has an entry that is unfit: %v", err)
	}
}
