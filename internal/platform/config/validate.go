package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nyaruka/phonenumbers"
)

// Problems are the errors in the settings, one line each, with the remedy.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// maxPort is the highest port number.
const maxPort = 65535

// Need is a service or key that a command requires.
type Need int

// Needs.
const (
	NeedDatabase Need = iota + 1 // SECKILL_DATABASE_URL
	NeedRedis                    // SECKILL_REDIS_URL
	NeedKeys                     // SECKILL_JWT_KEY
)

// Meets reports whether a need is met.
func (c *Config) Meets(need Need) bool {
	var p Problems
	p.need(c, need)
	return len(p) == 0
}

// Validate checks the settings for a command with its needs. The error is nil or
// Problems.
func (c *Config) Validate(needs ...Need) error {
	var p Problems
	for _, need := range needs {
		p.need(c, need)
	}
	p.server(c)
	p.lifetimes(c)
	p.bounds(c)
	if len(p) == 0 {
		return nil
	}
	return p
}

// need checks what a need requires.
func (p *Problems) need(c *Config, need Need) {
	switch need {
	case NeedDatabase:
		p.database(c.DatabaseURL)
	case NeedRedis:
		p.redis(c.RedisURL)
	case NeedKeys:
		p.keys(c)
	}
}

// add adds a problem of a setting, with the addresses in its arguments masked.
func (p *Problems) add(flag, format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = maskValue(text)
		}
	}
	*p = append(*p, Name(flag)+" "+fmt.Sprintf(format, args...))
}

// readable returns the parts of an address; nil, and a problem, when a character of its
// password misleads parsers. A text that is no address at all has no parts.
func (p *Problems) readable(flag, address string) *url.URL {
	if !strings.Contains(address, "://") {
		return &url.URL{}
	}
	u, err := readAddress(address)
	if err != nil {
		p.add(flag, "%v", err)
		return nil
	}
	return u
}

func (p *Problems) database(raw Secret) {
	if raw == "" {
		p.add("database-url", "is not set: give the address of Postgres, postgres://user:password@host:5432/seckill?sslmode=require")
		return
	}
	u := p.readable("database-url", string(raw))
	if u == nil {
		return
	}
	if u.Host == "" && !u.Query().Has("host") || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		p.add("database-url", "is not an address of Postgres: write postgres://user:password@host:5432/seckill?sslmode=require")
		return
	}
	if strings.Trim(u.Path, "/") == "" {
		p.add("database-url", "names no database: put /seckill, or your database's name, behind the port")
	}
	if mode := u.Query()["sslmode"]; len(mode) > 0 && !slices.Contains(sslModes, mode[0]) {
		p.add("database-url", "has an unknown sslmode: write one of %s", strings.Join(sslModes, ", "))
	}
}

// sslModes are the modes of encryption that the driver of Postgres knows.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

func (p *Problems) redis(raw Secret) {
	if raw == "" {
		p.add("redis-url", "is not set: give the address of Redis, redis://host:6379/0")
		return
	}
	if scheme, _, _ := strings.Cut(string(raw), "://"); strings.HasSuffix(scheme, "+sentinel") {
		p.sentinels(raw)
		return
	}
	nodes := strings.Split(string(raw), ",")
	for i, node := range nodes {
		node = strings.TrimSpace(node)
		if i > 0 && strings.Contains(node, "@") && !strings.Contains(node, "://") {
			p.add("redis-url", "%v", errUnreadable) // a comma in a password
			return
		}
		if i > 0 && !strings.Contains(node, "://") {
			node = "redis://" + node // the nodes after the first may be plain host:port
		}
		u := p.readable("redis-url", node)
		if u == nil {
			return
		}
		if u.Host == "" && !u.Query().Has("host") || (u.Scheme != "redis" && u.Scheme != "rediss") {
			p.add("redis-url", "is not an address of Redis in place %d: write redis://host:6379/0", i+1)
			continue
		}
		if db := strings.Trim(u.Path, "/"); len(nodes) > 1 && db != "" && db != "0" {
			p.add("redis-url", "names database %s in place %d: a Cluster has database 0 only", db, i+1)
		}
	}
}

func (p *Problems) sentinels(raw Secret) {
	const right = "redis+sentinel://host:26379,host:26379/mymaster"
	u := p.readable("redis-url", string(raw))
	switch {
	case u == nil:
	case u.Host == "" || (u.Scheme != "redis+sentinel" && u.Scheme != "rediss+sentinel"):
		p.add("redis-url", "is not a list of Sentinels: write %s", right)
	case strings.Trim(u.Path, "/") == "" || strings.Contains(strings.Trim(u.Path, "/"), "/"):
		p.add("redis-url", "names no master: write %s, and ?db= behind it for another database than 0", right)
	}
}

func (p *Problems) keys(c *Config) {
	if c.JWTKey == "" {
		p.add("jwt-key", "is not set: make a key of at least %d bytes with `openssl rand -base64 48`", MinKeyBytes)
		return
	}
	if err := c.fitKey(); err != nil {
		p.add("jwt-key", "is unfit: %v", err)
	}
	if _, err := c.previousKeys(); err != nil {
		p.add("jwt-previous-keys", "is unfit: %v", err)
	}
}

func (p *Problems) server(c *Config) {
	p.address("http-addr", c.HTTPAddr)
	p.address("admin-addr", c.AdminAddr)
	if c.HTTPAddr == c.AdminAddr && !strings.HasSuffix(c.HTTPAddr, ":0") {
		p.add("admin-addr", "is the public address: give the admin listener one of its own, 127.0.0.1:9090")
	}
	if c.PublicURL != "" && !isOrigin(c.PublicURL) {
		p.add("public-url", "is %q: write https://shop.example.com, with no path", c.PublicURL)
	}
	if c.ErrorReference != "" && !strings.HasPrefix(c.ErrorReference, "https://") &&
		!strings.HasPrefix(c.ErrorReference, "http://") {
		p.add("error-reference", "is %q: write the address of a page, https://docs.example.com/errors", c.ErrorReference)
	}
	for _, origin := range c.AllowedOrigins {
		if !isOrigin(origin) {
			p.add("allowed-origins", "has %q, which is not an origin: write https://shop.example.com, with no path", origin)
		}
	}
	p.media(c.Media.Reveal())
	p.outside(c)
	p.payments(c)
	p.mail(c)
	p.notices(c)
	p.push(c)
	p.shop(c)
	if c.Production() && !c.LimitsOn() {
		p.add("limits", "is off, which production does not allow: set it to on, or SECKILL_PROFILE to development")
	}
	if c.RedisPrefix == "" || strings.ContainsAny(c.RedisPrefix, "{}*?[] ") {
		p.add("redis-prefix", "is %q: give a short text without braces, wildcards or blanks, like sk:", c.RedisPrefix)
	}
}

// isOrigin reports whether a text consists of scheme and host only.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http") &&
		strings.TrimRight(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// HasPublicURL reports whether there is an address at which others reach the shop.
func (c *Config) HasPublicURL() bool { return isOrigin(c.PublicURL) }

func (p *Problems) address(flag, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		p.add(flag, "is %q: write host:port or :port", addr)
		return
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > maxPort) || errors.Is(err, strconv.ErrRange) {
		p.add(flag, "is %q: choose a port up to %d", addr, maxPort)
	}
}

// media checks the location of images, which may hold a password and is therefore not
// printed.
func (p *Problems) media(place string) {
	scheme, _, isURL := strings.Cut(place, "://")
	switch {
	case !isURL || scheme == "file":
	case scheme != "s3":
		p.add("media", "is neither a folder nor a store that speaks S3: write /var/lib/seckill/media, or s3://key:secret@host/bucket")
	default:
		if u := p.readable("media", place); u != nil && (u.Host == "" || strings.Trim(u.Path, "/") == "") {
			p.add("media", "names no bucket: write s3://key:secret@host/bucket?region=REGION")
		}
	}
}

// outside checks the addresses of services of others that the gate asks.
func (p *Problems) outside(c *Config) {
	for flag, text := range map[string]string{"captcha.verify-url": c.CaptchaVerifyURL, "risk-url": c.RiskURL,
		"payments.alipay.api-url": c.AlipayAPIURL} {
		if u := p.readable(flag, text); u != nil && text != "" && (u.Host == "" || u.Scheme != "https" &&
			u.Scheme != "http") {
			p.add(flag, "is no address: write https://host/path")
		}
	}
	if c.CaptchaVerifyURL != "" && (c.CaptchaSecret == "" || c.CaptchaSiteKey == "") {
		p.add("captcha.verify-url", "is set without captcha.secret and captcha.site_key: the operator of the captcha gives you both")
	}
	p.widget(c)
}

// maxCaptchaOrigins bounds the header of every page; hCaptcha names two.
const maxCaptchaOrigins = 16

// source is an origin as a Content-Security-Policy names it, with * for subdomains.
var source = regexp.MustCompile(`^https?://(\*\.[a-z0-9-]+\.)?[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?$`)

// widget checks where the widget of the outside captcha comes from: each origin becomes
// part of the pages' Content-Security-Policy.
func (p *Problems) widget(c *Config) {
	fits := func(origin string) bool {
		return source.MatchString(origin) && (strings.HasPrefix(origin, "https:") || !c.Production())
	}
	if c.CaptchaScriptURL == "" {
		if len(c.CaptchaOrigins) > 0 {
			p.add("captcha.origins", "is set without captcha.script_url: give the address of the widget's script")
		}
		return
	}
	if c.CaptchaVerifyURL == "" {
		p.add("captcha.script-url", "is set without captcha.verify_url: give the address that verifies the answers")
	}
	sources := c.CaptchaSources()
	if len(sources) == 0 || !fits(sources[0]) {
		p.add("captcha.script-url", "is no address of a script: write https://host/api.js")
	}
	if len(c.CaptchaOrigins) > maxCaptchaOrigins {
		p.add("captcha.origins", "has %d origins: give at most %d", len(c.CaptchaOrigins), maxCaptchaOrigins)
	}
	for _, origin := range c.CaptchaOrigins {
		if !fits(origin) {
			p.add("captcha.origins", "has %q, which is not an origin: write https://check.example or https://*.check.example",
				origin)
		}
	}
}

// lifetimes checks the durations. The limits are wide: they detect a wrong unit.
func (p *Problems) lifetimes(c *Config) {
	const day = 24 * time.Hour
	for _, d := range []struct {
		flag     string
		value    time.Duration
		min, max time.Duration
	}{
		{"request-timeout", c.RequestTimeout, 100 * time.Millisecond, time.Minute},
		{"drain-timeout", c.DrainTimeout, time.Second, 10 * time.Minute},
		{"access-token-ttl", c.AccessTokenTTL, 10 * time.Second, day},
		{"refresh-token-ttl", c.RefreshTokenTTL, time.Minute, day}, // account.DefaultLongest
		{"payment-window", c.PaymentWindow, time.Second, 7 * day},
		{"path-ttl", c.PathTTL, time.Second, time.Hour},
		{"waitlist-offer", c.WaitlistOffer, time.Second, day},
		{"notice-deadline", c.NoticeDeadline, time.Second, day},
		{"notice-opening", c.NoticeOpening, time.Minute, day},
		{"two-person-extension", c.TwoPersonExtension, time.Second, 7 * day},
		{"risk-timeout", c.RiskTimeout, time.Millisecond, 10 * time.Second},
	} {
		if d.value < d.min || d.value > d.max {
			p.add(d.flag, "is %s: choose between %s and %s", d.value, d.min, d.max)
		}
	}
	if c.RefreshTokenTTL < c.AccessTokenTTL {
		p.add("refresh-token-ttl", "is %s, shorter than an access token's %s: make it longer", c.RefreshTokenTTL,
			c.AccessTokenTTL)
	}
}

func (p *Problems) bounds(c *Config) {
	for _, n := range []struct {
		flag     string
		value    int
		min, max int
	}{
		{"database-pool", c.DatabasePool, 2, 1000},
		{"max-sockets", c.MaxSockets, 1, 1_000_000},
		{"pow-max", c.PowMax, 10_000, 10_000_000},
		{"two-person-units", c.TwoPersonUnits, 1, 1_000_000_000},
		{"two-person-money", int(c.TwoPersonMoney), 0, 1_000_000_000_000},
	} {
		if n.value < n.min || n.value > n.max {
			p.add(n.flag, "is %d: choose between %d and %d", n.value, n.min, n.max)
		}
	}
	if c.PhoneCountry != "" && phonenumbers.GetCountryCodeForRegion(c.PhoneCountry) == 0 {
		p.add("phone-country", "is %q: write two capital letters, such as CN", c.PhoneCountry)
	}
	if raw := c.TracesURL.Reveal(); raw != "" {
		if u := p.readable("traces-url", raw); u != nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			p.add("traces-url", "is not an address: write http://host:4318 of a receiver of OTLP over HTTP")
		}
	}
	if c.TracesShare < 0 || c.TracesShare > 1 {
		p.add("traces-share", "is %g: choose between 0 and 1", c.TracesShare)
	}
	if c.PermitRatio < 1 || c.PermitRatio > 100 {
		p.add("permit-ratio", "is %g: choose between 1 and 100; 1.2 to 1.5 is usual", c.PermitRatio)
	}
}
