package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMissingSettingsAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	err := Default().Validate(NeedDatabase, NeedRedis, NeedKeys)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3:\n%v", len(lines), err)
	}
	for i, name := range []string{"SECKILL_DATABASE_URL", "SECKILL_REDIS_URL", "SECKILL_JWT_KEY"} {
		if !strings.HasPrefix(lines[i], name+" is not set: ") {
			t.Errorf("line %d is %q", i+1, lines[i])
		}
	}
}

func TestUnfitSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*Config)
		want string
	}{
		"short key":             {func(c *Config) { c.JWTKey = "short" }, "SECKILL_JWT_KEY is unfit: has 5 bytes"},
		"previous key, no id":   {func(c *Config) { c.JWTPreviousKeys = []Secret{key} }, "SECKILL_JWT_PREVIOUS_KEYS is unfit: entry 1 is not of the form kid=key"},
		"previous key, short":   {func(c *Config) { c.JWTPreviousKeys = []Secret{"old=x"} }, "SECKILL_JWT_PREVIOUS_KEYS is unfit: key old has 1 bytes"},
		"previous key, twice":   {func(c *Config) { c.JWTPreviousKeys = []Secret{"old=" + key, "old=" + key} }, "SECKILL_JWT_PREVIOUS_KEYS is unfit: key old is there twice"},
		"browser's key":         {func(c *Config) { c.StripeKey, c.StripeWebhookSecret = "pk_live_1", "whsec_1" }, "payments.stripe.key is no secret key"},
		"no webhook secret":     {func(c *Config) { c.StripeKey = "sk_live_1" }, "payments.stripe.webhook_secret and payments.stripe.key go together"},
		"no stripe key":         {func(c *Config) { c.StripeWebhookSecret = "whsec_1" }, "payments.stripe.webhook_secret and payments.stripe.key go together"},
		"part of wechat":        {func(c *Config) { sellers(c).WeChatPlatformKey = "" }, "payments.wechat.platform_key is missing, and payments.wechat.merchant_id needs it"},
		"wechat, no merchant":   {func(c *Config) { c.WeChatAppID = "wx1" }, "payments.wechat.merchant_id is missing, and payments.wechat.app_id is set"},
		"short wechat key":      {func(c *Config) { sellers(c).WeChatAPIKey = "short" }, "payments.wechat.api_key has 5 characters"},
		"part of alipay":        {func(c *Config) { sellers(c).AlipayPublicKey = "" }, "payments.alipay.public_key is missing, and payments.alipay.app_id needs it"},
		"service, no secret":    {func(c *Config) { sellers(c).PaymentServiceSecret = "" }, "payments.service.secret is not whsec_"},
		"service, slash":        {func(c *Config) { sellers(c).PaymentServiceURL = "https://pay.example/" }, "payments.service.url is no address"},
		"service named stripe":  {func(c *Config) { sellers(c).PaymentServiceName = "stripe" }, "payments.service.name is \"stripe\""},
		"service, currencies":   {func(c *Config) { sellers(c).PaymentServiceCurrencies = "EUR=100, USD" }, "payments.service.currencies has an entry that is unfit: \"USD\""},
		"service, amounts":      {func(c *Config) { sellers(c).PaymentServiceCurrencies = "EUR=100:50" }, "payments.service.currencies has an entry that is unfit: \"EUR=100:50\""},
		"pale accent":           {func(c *Config) { c.ThemeAccent = "#ff6a00" }, "shop.accent is #ff6a00, whose contrast with white is 2.87:1, and 4.5:1 is the least: #c75300 would do"},
		"no colour":             {func(c *Config) { c.ThemeAccent = "red" }, "shop.accent is \"red\": write # and six hexadecimal digits"},
		"logo of a kind":        {func(c *Config) { c.ThemeLogo = "logo.gif" }, "shop.logo is \"logo.gif\": give a file that ends in .svg or .png"},
		"only a dark logo":      {func(c *Config) { c.ThemeLogoDark = "logo.svg" }, "shop.logo_dark is set without shop.logo"},
		"no order in the page":  {func(c *Config) { c.Storefront = "https://shop.example/orders" }, "shop.storefront is unfit"},
		"page without a host":   {func(c *Config) { c.Storefront = "/orders/{id}" }, "shop.storefront is unfit"},
		"page by script":        {func(c *Config) { c.Storefront = "javascript://x/{id}" }, "shop.storefront is unfit"},
		"page by http":          {func(c *Config) { c.Storefront = "http://shop.example/orders/{id}" }, "shop.storefront is unfit"},
		"long name":             {func(c *Config) { c.ShopName = strings.Repeat("名", 41) }, "shop.name is unfit"},
		"mail, no server":       {func(c *Config) { c.SMTPFrom = "a@b.example" }, "SECKILL_SMTP_URL is not set"},
		"mail by http":          {func(c *Config) { mailer(c).SMTPURL = "http://mail.example" }, "SECKILL_SMTP_URL is no mail server"},
		"mail, no sender":       {func(c *Config) { mailer(c).SMTPFrom = "Shop" }, "SECKILL_SMTP_FROM is no sender"},
		"mail, no links":        {func(c *Config) { mailer(c).PublicURL = "" }, "SECKILL_PUBLIC_URL is not set, and SECKILL_SMTP_URL is"},
		"mail, no password":     {func(c *Config) { mailer(c).SMTPPassword = "" }, "SECKILL_SMTP_PASSWORD and the user in SECKILL_SMTP_URL go together"},
		"hook, no secret":       {func(c *Config) { c.NoticeHookURL = "https://messages.example" }, "SECKILL_NOTICE_HOOK_SECRET and SECKILL_NOTICE_HOOK_URL go together"},
		"hook by http":          {func(c *Config) { c.NoticeHookURL, c.NoticeHookSecret = "http://messages.example", "whsec_c2VjcmV0" }, "SECKILL_NOTICE_HOOK_URL is no address of a service"},
		"hook, bad secret":      {func(c *Config) { c.NoticeHookURL, c.NoticeHookSecret = "https://messages.example", "secret" }, "SECKILL_NOTICE_HOOK_SECRET is no secret"},
		"late reminder":         {func(c *Config) { c.NoticeOpening = 0 }, "SECKILL_NOTICE_OPENING is 0s"},
		"password in clear":     {func(c *Config) { mailer(c).SMTPTLS = SMTPTLSOff }, "SECKILL_SMTP_TLS is off, and the password would cross the network"},
		"stripe elsewhere":      {func(c *Config) { c.Profile, c.StripeAPIURL = ProfileDevelopment, "stripe" }, "payments.stripe.api_url is no address"},
		"stripe, in production": {func(c *Config) { c.StripeAPIURL = "https://127.0.0.1" }, "payments.stripe.api_url is for tests"},
		"script, in production": {func(c *Config) { c.StripeScriptURL = "https://127.0.0.1/s.js" }, "payments.stripe.script_url is for tests"},
		"wechat, in production": {func(c *Config) { c.WeChatAPIURL = "https://127.0.0.1" }, "payments.wechat.api_url is for tests"},
		"limits in production":  {func(c *Config) { c.Limits = SwitchOff }, "SECKILL_LIMITS is off"},
		"mysql":                 {func(c *Config) { c.DatabaseURL = "mysql://x/y" }, "SECKILL_DATABASE_URL is not an address of Postgres"},
		"no database name":      {func(c *Config) { c.DatabaseURL = "postgres://localhost" }, "names no database"},
		"http for redis":        {func(c *Config) { c.RedisURL = "http://x" }, "SECKILL_REDIS_URL is not an address of Redis in place 1"},
		"blank cluster node":    {func(c *Config) { c.RedisURL = "redis://a:1,b:2," }, "is not an address of Redis in place 3"},
		"sentinels of none":     {func(c *Config) { c.RedisURL = "redis+sentinel://a:1,b:2" }, "names no master"},
		"no sentinels":          {func(c *Config) { c.RedisURL = "http+sentinel://a:1/shop" }, "is not a list of Sentinels"},
		"cluster database":      {func(c *Config) { c.RedisURL = "redis://a,redis://b/3" }, "a Cluster has database 0 only"},
		"address":               {func(c *Config) { c.HTTPAddr = "8080" }, "SECKILL_HTTP_ADDR is \"8080\""},
		"same address":          {func(c *Config) { c.AdminAddr = c.HTTPAddr }, "SECKILL_ADMIN_ADDR is the public address"},
		"origin with a path":    {func(c *Config) { c.AllowedOrigins = []string{"https://a.example/shop"} }, "SECKILL_ALLOWED_ORIGINS has"},
		"public url":            {func(c *Config) { c.PublicURL = "shop.example.com" }, "SECKILL_PUBLIC_URL is"},
		"prefix with braces":    {func(c *Config) { c.RedisPrefix = "{a}" }, "SECKILL_REDIS_PREFIX is"},
		"easy proof of work":    {func(c *Config) { c.PowMax = 9999 }, "SECKILL_POW_MAX is 9999"},
		"milliseconds meant":    {func(c *Config) { c.PathTTL = 60 }, "SECKILL_PATH_TTL is 60ns: choose between 1s and 1h0m0s"},
		"session too short":     {func(c *Config) { c.RefreshTokenTTL = 2 * time.Minute }, "shorter than an access token"},
		"name of a country":     {func(c *Config) { c.PhoneCountry = "China" }, `SECKILL_PHONE_COUNTRY is "China": write two capital letters`},
		"permit ratio":          {func(c *Config) { c.PermitRatio = 0.5 }, "SECKILL_PERMIT_RATIO is 0.5"},
		"offer in the past":     {func(c *Config) { c.WaitlistOffer = -5 * time.Second }, "SECKILL_WAITLIST_OFFER is -5s: choose between 1s and"},
		"offer of no time":      {func(c *Config) { c.WaitlistOffer = 0 }, "SECKILL_WAITLIST_OFFER is 0s: choose between 1s and"},
		"units below none":      {func(c *Config) { c.TwoPersonUnits = -1 }, "SECKILL_TWO_PERSON_UNITS is -1: choose between 1 and"},
		"pictures by FTP":       {func(c *Config) { c.Media = "ftp://foo/x" }, "SECKILL_MEDIA is neither a folder nor a store that speaks S3"},
		"no bucket":             {func(c *Config) { c.Media = "s3://foo" }, "SECKILL_MEDIA names no bucket: write s3://"},
		"port beyond the last":  {func(c *Config) { c.HTTPAddr = ":99999" }, `SECKILL_HTTP_ADDR is ":99999": choose a port up to 65535`},
		"script of no check":    {func(c *Config) { c.CaptchaScriptURL = "https://a.example/api.js" }, "captcha.script_url is set without captcha.verify_url"},
		"script by HTTP":        {func(c *Config) { check(c).CaptchaScriptURL = "http://a.example/api.js" }, "captcha.script_url is no address of a script"},
		"script that ends a policy": {
			func(c *Config) { check(c).CaptchaScriptURL = "https://a.example;b/api.js" }, "captcha.script_url is no address",
		},
		"path as an origin": {
			func(c *Config) { check(c).CaptchaOrigins = []string{"https://a.example/x"} }, `captcha.origins has "https://a.example/x"`,
		},
		"any origin": {func(c *Config) { check(c).CaptchaOrigins = []string{"https://*"} }, `captcha.origins has "https://*"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Default()
			c.DatabaseURL, c.RedisURL, c.JWTKey = "postgres://localhost/seckill", "redis://localhost:6379/0", key
			if err := c.Validate(NeedDatabase, NeedRedis, NeedKeys); err != nil {
				t.Fatalf("fit settings are refused: %v", err)
			}
			test.set(c)
			err := c.Validate(NeedDatabase, NeedRedis, NeedKeys)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want one line with %q", err, test.want)
			}
		})
	}
}

// check sets an outside captcha.
func check(c *Config) *Config {
	c.CaptchaVerifyURL, c.CaptchaSiteKey, c.CaptchaSecret = "https://a.example/verify", "site", "secret"
	c.CaptchaScriptURL = "https://a.example/api.js"
	c.CaptchaOrigins = []string{"https://*.a.example", "https://b.example:8443"}
	return c
}

// sellers sets up every provider whose settings belong together.
func sellers(c *Config) *Config {
	c.WeChatMerchantID, c.WeChatAppID, c.WeChatMerchantSerial, c.WeChatMerchantKey = "1900000001", "wx1", "5157", "PEM"
	c.WeChatAPIKey, c.WeChatPlatformKey = Secret(strings.Repeat("k", 32)), "PEM"
	c.AlipayAppID, c.AlipayKey, c.AlipayPublicKey = "2021", "PEM", "PEM"
	c.PaymentServiceURL, c.PaymentServiceSecret = "https://pay.example/shop", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	c.PaymentServiceCurrencies = "EUR=100, USD=50:500000"
	return c
}

// mailer gives a configuration a mail server.
func mailer(c *Config) *Config {
	c.SMTPURL, c.SMTPPassword, c.SMTPFrom, c.PublicURL = "smtp://shop@mail.example", "a password", "Shop <shop@shop.example>", "https://shop.example"
	return c
}

func TestTheMailServerHasThePortOfItsProtocol(t *testing.T) {
	t.Parallel()
	for address, want := range map[Secret]SMTP{
		"smtp://shop@mail.example":          {Host: "mail.example", Port: "587", User: "shop", Password: "a password"},
		"smtps://shop@mail.example":         {Host: "mail.example", Port: "465", User: "shop", Password: "a password", TLS: true},
		"smtp://shop:other@mail.example:25": {Host: "mail.example", Port: "25", User: "shop", Password: "other"},
	} {
		c := mailer(Default())
		c.SMTPURL = address
		want.From = c.SMTPFrom
		if got := c.SMTP(); *got != want {
			t.Errorf("%s: %+v, want %+v", address.Reveal(), *got, want)
		}
	}
	if got := Default().SMTP(); got != nil {
		t.Errorf("without settings: %+v", got)
	}
}

func TestProvidersAreSetUpByTheirSettings(t *testing.T) {
	t.Parallel()
	c := sellers(Default())
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if taken, err := c.ServiceCurrencies(); err != nil || len(taken) != 2 || taken["USD"] != (Bounds{50, 500000}) || taken["EUR"] != (Bounds{Least: 100}) {
		t.Errorf("currencies %v, %v", taken, err)
	}
	if secret, err := c.ServiceSecret(); err != nil || len(secret) != 32 || !c.PaymentsOn() {
		t.Errorf("secret of %d bytes, %v", len(secret), err)
	}
}

func TestAnOutsideCaptchaIsASetOfSettings(t *testing.T) {
	t.Parallel()
	c := check(Default())
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	want := []string{"https://a.example", "https://*.a.example", "https://b.example:8443"}
	if got := c.CaptchaSources(); !slices.Equal(got, want) {
		t.Errorf("pages load from %v, want %v", got, want)
	}
}

func TestLimitsMayBeOffInDevelopment(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Profile, c.Limits = ProfileDevelopment, SwitchOff
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.LimitsOn() {
		t.Error("limits are on")
	}
}

func TestANewKeyHasANewIdAndFormerOnesStayGood(t *testing.T) {
	t.Parallel()
	first, second := Default(), Default()
	first.JWTKey = key
	second.JWTKey = Secret(strings.Repeat("z", 40))
	old, _, err := first.SigningKeys()
	if err != nil {
		t.Fatal(err)
	}
	second.JWTPreviousKeys = []Secret{Secret(old.ID + "=" + key)}
	current, previous, err := second.SigningKeys()
	if err != nil {
		t.Fatal(err)
	}
	if current.ID == old.ID || len(previous) != 1 || previous[0].ID != old.ID || string(previous[0].Secret) != key {
		t.Errorf("current %s, previous %v, old %s", current.ID, previous, old.ID)
	}
}

func TestTheDemoNeedsNoSettings(t *testing.T) {
	t.Parallel()
	d := Default().ForDemo(key)
	if d.Production() {
		t.Error("the demo is in production")
	}
	if d.HTTPAddr != "127.0.0.1:8080" {
		t.Errorf("the demo listens on %s: its accounts have known passwords", d.HTTPAddr)
	}
	open := Default()
	open.HTTPAddr = "0.0.0.0:80"
	if got := open.ForDemo(key).HTTPAddr; got != open.HTTPAddr {
		t.Errorf("the demo listens on %s, want %s", got, open.HTTPAddr)
	}
	if err := d.Validate(NeedKeys); err != nil {
		t.Error(err)
	}
}

func TestRateLimitsAreParsedAndBounded(t *testing.T) {
	t.Parallel()
	c, _, err := Parse(nil, env("SECKILL_RATE_LIMITS", "placeOrder=7/2.5, login=10/0.2"))
	if err != nil || !slices.Equal(c.RateLimits, []RateLimit{{"placeOrder", 7, 2.5}, {"login", 10, 0.2}}) {
		t.Errorf("%+v %v", c, err)
	}
	c, _, err = Parse(nil, env("SECKILL_RATE_LIMITS", "placeOrder=5/5s,login=3/1h"))
	if err != nil || !slices.Equal(c.RateLimits, []RateLimit{{"placeOrder", 5, 1}, {"login", 3, 3.0 / 3600}}) || c.RateLimits[0].String() != "placeOrder=5/5s" {
		t.Errorf("windows: %+v %v", c.RateLimits, err)
	}
	for _, text := range []string{"login=5/0s", "login=5/-5s", "login", "login=", "login=5", "=5/1", "login=0/1", "login=5/0", "login=5/NaN", "login=x/1", "login=2000000/1"} {
		if _, _, err := Parse(nil, env("SECKILL_RATE_LIMITS", text)); err == nil || !strings.Contains(err.Error(), "write operation=calls/window") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAnUnknownEncryptionOfPostgresIsRefused(t *testing.T) {
	t.Parallel()
	for mode, good := range map[string]bool{
		"disable": true, "allow": true, "prefer": true, "require": true, "verify-ca": true, "verify-full": true,
		"required": false, "on": false, "": false, "Require": false,
	} {
		c := Default()
		c.DatabaseURL = Secret("postgres://u:p@a:5432/shop?sslmode=" + mode)
		err := c.Validate(NeedDatabase)
		if (err == nil) != good {
			t.Errorf("%q: %v", mode, err)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: the error shows the password: %v", mode, err)
		}
	}
}

func TestAddressesOfPostgresMayNameSeveralHostsOrASocket(t *testing.T) {
	t.Parallel()
	for _, address := range []Secret{
		"postgres://u:p@a:5432,b:5433/shop?target_session_attrs=read-write",
		"postgres:///shop?host=/run/postgresql",
	} {
		c := Default()
		c.DatabaseURL = address
		if err := c.Validate(NeedDatabase); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
