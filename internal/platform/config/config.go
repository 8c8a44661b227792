// Package config owns all settings: name, default, meaning and rules, and the origin of
// each value. Flags override the environment, the environment overrides the file, the
// file overrides the default.
//
// It parses and validates; it opens nothing and imports no other package of this module but accent.
package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// EnvPrefix starts the name of every environment variable.
const EnvPrefix = "SECKILL_"

// DefaultFile is read if it exists and no other file is given.
const DefaultFile = "seckill.toml"

// Config holds the settings. The tags are those of kong: they name the flag, from which
// the environment variable (SECKILL_HTTP_ADDR) and the key in the file (http_addr)
// derive. Use Default, or parse one with Options.
type Config struct {
	File    string  `name:"config" placeholder:"FILE" group:"general" help:"File of settings in TOML. Without it, ./seckill.toml is read when it is there."`
	Profile Profile `default:"production" group:"general" help:"production, or development: introspection, playground, queries by GET, suggestions for misspelled fields."`

	LogLevel  slog.Level `default:"info" group:"general" help:"Least severe lines to log: debug, info, warn or error."`
	LogFormat LogFormat  `default:"auto" group:"general" help:"json, text, or auto: text on a terminal and in the development profile, else json."`

	TracesURL   Secret  `name:"traces-url" group:"general" placeholder:"URL" help:"Where traces are sent, OTLP over HTTP: http://collector:4318. Without it, there are none."`
	TracesShare float64 `default:"0.01" group:"general" help:"Share of the requests that are traced, from 0 to 1; trusted proxies may ask for more with a traceparent header."`

	DatabaseURL     Secret  `group:"services" placeholder:"URL" help:"Postgres: postgres://user:password@host:5432/seckill?sslmode=require. sslmode is disable, require (the default), verify-ca or verify-full (with ?sslrootcert=FILE). Several hosts, comma separated, are tried in their order, with ?target_session_attrs=read-write until one takes writes; ?host=/directory is a Unix socket."`
	DatabasePool    int     `default:"16" group:"services" help:"Most Postgres connections of one process, without two in reserve for requests of staff."`
	DatabasePooling Pooling `default:"session" group:"services" help:"session, or transaction: the address leads to a pooler in transaction mode, such as PgBouncer. Timeouts are then those of the role."`
	RedisURL        Secret  `group:"services" placeholder:"URL" help:"Redis: redis://host:6379/0, rediss for TLS (?ca=FILE). Several, comma separated, are the nodes of a Cluster. redis+sentinel://host:26379,host:26379/mymaster asks Sentinels for the master."`
	RedisPrefix     string  `default:"sk:" group:"services" help:"First part of every Redis key; keeps installations on one Redis apart."`

	HTTPAddr         string         `default:":8080" group:"server" help:"Public listener: shop, GraphQL, webhooks."`
	AdminAddr        string         `default:"127.0.0.1:9090" group:"server" help:"Admin listener: health, metrics, profiles. Keep it private."`
	PublicURL        string         `name:"public-url" group:"server" placeholder:"URL" help:"Where browsers and payment providers reach the shop: https://shop.example.com. Without it, the public listener on localhost."`
	ErrorReference   string         `group:"server" placeholder:"URL" help:"Page of error codes to which errors link, for example your own documentation. Without it, /errors of this server."`
	HSTSSubdomains   Switch         `name:"hsts-subdomains" default:"off" group:"server" help:"Browsers that have opened the shop over HTTPS use HTTPS for its subdomains too: on, or off."`
	AllowedOrigins   []string       `group:"server" placeholder:"ORIGIN" help:"Browser origins, besides the server's own, that may use the API: https://shop.example.com."`
	Documents        Documents      `default:"any" group:"server" help:"GraphQL documents that are answered: any within the limits of cost, or trusted: those of the shop and of SECKILL_TRUSTED_DOCUMENTS only."`
	TrustedDocuments string         `group:"server" placeholder:"PATH" help:"Manifest of trusted documents, or a folder of *.json manifests: Apollo's, or a map from id to text as Relay, gql.tada and graphql-codegen write. Read again within 5 s of a change."`
	Introspection    Introspection  `default:"auto" group:"server" help:"Who may query the schema: off, staff, on, or auto: on in the development profile, else off."`
	Playground       AutoSwitch     `default:"auto" group:"server" help:"GraphiQL at /playground: on, off, or auto: on in the development profile, else off."`
	WebhookNetworks  []netip.Prefix `group:"server" placeholder:"CIDR" help:"Private networks or addresses to which events may be sent, besides public ones: 10.0.0.0/8. With any, webhooks may use http."`
	TrustedProxies   []netip.Prefix `group:"server" placeholder:"CIDR" help:"Networks or addresses of proxies whose X-Forwarded-For is believed: 10.0.0.0/8."`
	RequestTimeout   time.Duration  `default:"5s" group:"server" help:"Timeout of one query or mutation. Above 5s the timeouts of its steps grow in proportion."`
	MaxSockets       int            `default:"20000" group:"server" help:"Most open subscription connections of one process, fewer where its limit of open files is low; a tenth of them, or 100, from one network without signing in."`
	Media            Secret         `group:"server" placeholder:"LOCATION" help:"Where images of products are stored: a folder, or s3://key:secret@host/bucket?region=REGION. Without it, none can be uploaded."`
	DrainTimeout     time.Duration  `default:"20s" group:"server" help:"Timeout for running requests and messages at shutdown."`

	JWTKey          Secret        `name:"jwt-key" group:"accounts" placeholder:"KEY" help:"Key that signs access tokens, at least 32 bytes: openssl rand -base64 48."`
	JWTPreviousKeys []Secret      `name:"jwt-previous-keys" group:"accounts" placeholder:"KID=KEY" help:"Former keys whose tokens are still valid, by key id (see config print)."`
	AccessTokenTTL  time.Duration `default:"10m" group:"accounts" help:"Life of an access token."`
	RefreshTokenTTL time.Duration `default:"30m" group:"accounts" help:"A session ends after this long without a refresh; each refresh restarts it. It ends 24 hours after the sign-in in any case."`

	PhoneCountry string    `group:"accounts" placeholder:"CC" help:"Country of phone numbers without a country code, two letters: CN. Without it, phone numbers need their country code."`
	OIDC         string    `name:"oidc" group:"accounts" placeholder:"FILE" help:"File of OpenID providers with whose accounts users sign in, JSON or TOML; default: tables [oidc.NAME] of the file of settings. docs/sign-in-with-others.md."`
	TokenIssuers string    `name:"token-issuers" group:"accounts" placeholder:"FILE" help:"File of other systems whose access tokens (JWT) are accepted, a JSON array: docs/sign-in-with-others.md."`
	StaffTOTP    StaffTOTP `name:"staff-totp" default:"optional" group:"accounts" help:"One-time codes of operators and administrators: optional, or required: without one, they have the rights of a customer until they set it up on the account page."`

	PaymentWindow time.Duration `default:"15m" group:"gate" help:"How long a buyer has to pay, in sales that are created without a time of their own."`

	Shop

	Mail
	Notice
	Push

	Providers

	PathTTL            time.Duration `default:"60s" group:"gate" help:"Lifetime of a path token."`
	PermitRatio        float64       `default:"1.5" group:"gate" help:"Most unused path tokens of an item, as a multiple of the units left."`
	PowMax             int           `name:"pow-max" default:"100000" group:"gate" help:"Difficulty of the proof of work, unless a sale has its own: the number to find is at most this. Clients that request many challenges get harder ones."`
	CaptchaVerifyURL   string        `name:"captcha.verify-url" aliases:"captcha-verify-url" group:"gate" placeholder:"URL" help:"siteverify address of an outside captcha (hCaptcha, Turnstile, reCAPTCHA): captchas of the kind EXTERNAL can be answered then. Programs read the shop's own images (TEXT, MATH)."`
	CaptchaSiteKey     string        `name:"captcha.site-key" aliases:"captcha-site-key" group:"gate" placeholder:"KEY" help:"Public key of the outside captcha."`
	CaptchaSecret      Secret        `name:"captcha.secret" aliases:"captcha-secret" group:"gate" placeholder:"SECRET" help:"Secret of the outside captcha."`
	CaptchaScriptURL   string        `name:"captcha.script-url" aliases:"captcha-script-url" group:"gate" placeholder:"URL" help:"Script of the outside captcha's widget: with it, the shop shows the widget, and its pages may load from the origin of the script."`
	CaptchaOrigins     []string      `name:"captcha.origins" aliases:"captcha-origins" group:"gate" placeholder:"ORIGIN" help:"Origins, besides the script's own, of what the widget loads and frames: https://hcaptcha.com,https://*.hcaptcha.com."`
	RiskURL            string        `name:"risk-url" group:"gate" placeholder:"URL" help:"A service that is asked whether a buyer gets a path token or a waiting-room ticket: docs/operations.md."`
	RiskTimeout        time.Duration `default:"50ms" group:"gate" help:"How long the risk service may take."`
	RiskFailure        RiskFailure   `default:"open" group:"gate" help:"When the risk service does not answer: open lets buyers pass, closed refuses them."`
	WaitlistOffer      time.Duration `default:"60s" group:"gate" help:"How long a returned unit is reserved for the next buyer of the waitlist."`
	DrawRelays         []string      `default:"https://api.drand.sh,https://drand.cloudflare.com" group:"gate" placeholder:"URL" help:"Relays of the beacon drand whose public random values order draw sales. operator = operators enter a public value and its source, for networks without a way out. local = the server chooses the values itself: such a draw proves nothing to others."`
	TwoPersonUnits     int           `default:"100" group:"gate" help:"Units of one item that operators put on sale within 24 hours without a second person."`
	TwoPersonExtension time.Duration `default:"30m" group:"gate" help:"By how much one operator may extend a live sale within 24 hours without a second person."`
	TwoPersonMoney     int64         `default:"1000000" group:"gate" help:"Minor units of each currency that one operator returns to buyers within 24 hours without a second person."`
	RateLimits         []RateLimit   `group:"gate" placeholder:"OPERATION=CALLS/WINDOW" help:"Rate limits of operations, instead of those in the API's description (@rateLimit): placeOrder=5/5s,login=10/50s. So many calls are allowed in any window of that length. A sale's own limits come first."`
	Limits             Switch        `default:"on" group:"gate" help:"Rate limits: on, or off (never in production)."`

	Former
	Overrides
}

// Overrides replace constants in tests. No flag, variable or file sets them; zero keeps the constant.
type Overrides struct {
	CaptchaPool  int           `kong:"-"` // images of each kind drawn in advance
	LoadSlot     time.Duration `kong:"-"` // preload.DefaultSlot
	LoadSlots    int           `kong:"-"` // preload.DefaultSlots
	PreloadEvery time.Duration `kong:"-"` // preload.Every
	PushServices []string      `kong:"-"` // notice.PushServices
}

// Groups returns the groups of settings, in the order of the help.
func Groups() []Group {
	return []Group{
		{Key: "general", Title: "Settings: general"},
		{Key: "services", Title: "Settings: services"},
		{Key: "server", Title: "Settings: server"},
		{Key: "shop", Title: "Settings: shop"},
		{Key: "accounts", Title: "Settings: accounts"},
		{Key: "mail", Title: "Settings: mail"},
		{Key: "gate", Title: "Settings: gate"},
		{Key: "payments", Title: "Settings: payments"},
	}
}

// Group is a set of related settings.
type Group struct {
	Key   string // as in the tags of Config
	Title string // for the help
}

// Production reports whether the strict profile is on.
func (c *Config) Production() bool { return c.Profile == ProfileProduction }

// PlaygroundOn reports whether GraphiQL is served.
func (c *Config) PlaygroundOn() bool {
	return c.Playground == AutoSwitchOn || c.Playground == AutoSwitchAuto && !c.Production()
}

// WhoIntrospects returns Introspection with auto replaced by the profile's default.
func (c *Config) WhoIntrospects() Introspection {
	switch {
	case c.Introspection != IntrospectionAuto:
		return c.Introspection
	case c.Production():
		return IntrospectionOff
	}
	return IntrospectionOn
}

// CaptchaSources returns the origins from which the widget of the outside captcha loads;
// none without a widget. Validate has checked them.
func (c *Config) CaptchaSources() []string {
	u, err := url.Parse(c.CaptchaScriptURL)
	if c.CaptchaScriptURL == "" || err != nil {
		return nil
	}
	return append([]string{u.Scheme + "://" + u.Host}, c.CaptchaOrigins...)
}

// StripeSources returns the origins from which the page of a payment loads, frames and calls;
// none without the Payment Element. Validate has checked them.
func (c *Config) StripeSources() []string {
	u, err := url.Parse(c.StripeScriptURL)
	if c.StripePublishableKey == "" || err != nil {
		return nil
	}
	return append([]string{u.Scheme + "://" + u.Host}, c.StripeOrigins...)
}

// LimitsOn reports whether rate limits are enforced. Validate requires them in
// production.
func (c *Config) LimitsOn() bool { return c.Limits == SwitchOn }

// demoDrain is the DrainTimeout of the demo without one of its own.
const demoDrain = 5 * time.Second

// ForDemo returns a copy for the demo: development profile, random keys. It listens on
// 127.0.0.1 unless another address is given; the other settings are unchanged.
func (c *Config) ForDemo(randomKey Secret) *Config {
	d := *c
	d.Profile = ProfileDevelopment
	d.JWTKey, d.JWTPreviousKeys = randomKey, nil
	if strings.HasPrefix(d.HTTPAddr, ":") {
		d.HTTPAddr = "127.0.0.1" + d.HTTPAddr
	}
	if key, err := NewPushKey(); err == nil && d.PushPrivateKey == "" {
		d.PushPrivateKey, d.PushSubject = key, "mailto:demo@demo.example"
	}
	if d.DrainTimeout == Default().DrainTimeout {
		d.DrainTimeout = demoDrain
	}
	if len(d.TrustedProxies) == 0 { // `seckill drill` connects for buyers of many addresses
		d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
	}
	return &d
}
