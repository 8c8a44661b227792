package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// Names of the cookies that carry a browser's refresh token and its device token.
	refreshCookie = "seckill_refresh"
	deviceCookie  = "seckill_device"
	// signedInCookie shows scripts that there is a refresh token. It opens nothing: a page
	// that knows no session yet asks for one only with it, and not for every visitor.
	signedInCookie = "seckill_signed_in"
	// hostPrefix makes a browser accept a cookie only from this host over TLS, so that
	// no other subdomain sets or shadows it (RFC 6265bis §4.1.3.2).
	hostPrefix = "__Host-"
	// cookieHeader requests cookies. Pages of other origins cannot send it: a custom
	// header needs a preflight, which is refused for other origins.
	cookieHeader = "X-Seckill-Session"
)

// Cookie carries a browser's tokens in cookies that scripts cannot read: HttpOnly and
// SameSite=Strict. Over TLS the names begin with "__Host-".
type Cookie struct {
	answer          http.Header
	refresh, device string // as received with the request
	secure          bool
}

type cookieKey struct{}

// CookieFrom returns the cookie of a request that requested one; nil = tokens are sent in
// bodies.
func CookieFrom(ctx context.Context) *Cookie {
	c, _ := ctx.Value(cookieKey{}).(*Cookie)
	return c
}

// NewCookie returns the cookie of a request that is not of the API. secure reports whether
// the client's connection is encrypted.
func NewCookie(w http.ResponseWriter, secure bool) *Cookie {
	return &Cookie{answer: w.Header(), secure: secure}
}

// WithCookies attaches a Cookie to requests with the header "X-Seckill-Session: cookie".
func WithCookies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get(cookieHeader), "cookie") {
			next.ServeHTTP(w, r)
			return
		}
		c := &Cookie{answer: w.Header(), secure: ClientFrom(r.Context()).Secure}
		if sent, err := r.Cookie(c.name(refreshCookie)); err == nil {
			c.refresh = sent.Value
		}
		if sent, err := r.Cookie(c.name(deviceCookie)); err == nil {
			c.device = sent.Value
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), cookieKey{}, c)))
	})
}

// Sent returns the refresh token received with the request, "" if there is none.
func (c *Cookie) Sent() string {
	if c == nil {
		return ""
	}
	return c.refresh
}

// Device returns the device token received with the request, "" if there is none.
func (c *Cookie) Device() string {
	if c == nil {
		return ""
	}
	return c.device
}

// Set sends a refresh token to the browser.
func (c *Cookie) Set(token string, expires time.Time) { c.refreshToken(token, "1", expires) }

// SetDevice sends a device token to the browser.
func (c *Cookie) SetDevice(token string, expires time.Time) {
	c.send(c.name(deviceCookie), c.path(), true, token, expires)
}

// Clear deletes the refresh token. It does nothing on a nil cookie.
func (c *Cookie) Clear() {
	if c != nil {
		c.refreshToken("", "", time.Time{})
	}
}

// refreshToken sends a refresh token, which only the server reads, and the mark that scripts read.
func (c *Cookie) refreshToken(token, mark string, expires time.Time) {
	c.send(c.name(refreshCookie), c.path(), true, token, expires)
	c.send(signedInCookie, "/", false, mark, expires)
}

func (c *Cookie) name(name string) string {
	if c.secure {
		return hostPrefix + name
	}
	return name
}

// path returns the path of the cookies that only the server reads.
func (c *Cookie) path() string {
	if c.secure {
		return "/" // required by hostPrefix
	}
	return "/graphql"
}

// send replaces an earlier cookie of the same name in the response. A zero expiry deletes the cookie.
func (c *Cookie) send(name, path string, httpOnly bool, value string, expires time.Time) {
	v := http.Cookie{ //nolint:gosec // Secure follows the request: the demo has no TLS
		Name: name, Value: value, Path: path, Expires: expires, HttpOnly: httpOnly, Secure: c.secure,
		SameSite: http.SameSiteStrictMode,
	}
	if expires.IsZero() {
		v.MaxAge = -1
	}
	c.answer["Set-Cookie"] = append(slices.DeleteFunc(c.answer["Set-Cookie"], func(line string) bool {
		return strings.HasPrefix(line, name+"=")
	}), v.String())
}
