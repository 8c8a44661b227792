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
	// hostPrefix makes a browser accept a cookie only from this host over TLS, so that
	// no other subdomain sets or shadows it (RFC 6265bis §4.1.3.2).
	hostPrefix = "__Host-"
	// cookieHeader asks for cookies. A page of another origin cannot send it: a custom
	// header needs a preflight, which other origins are refused.
	cookieHeader = "X-Seckill-Session"
)

// Cookie carries a browser's tokens where no script can read them: HttpOnly, and sent
// by pages of the same site alone. Over TLS the names begin with "__Host-".
type Cookie struct {
	answer          http.Header
	refresh, device string // as they came with the request
	secure          bool
}

type cookieKey struct{}

// CookieFrom returns the cookie of a request that asked for one; nil = tokens travel in
// bodies.
func CookieFrom(ctx context.Context) *Cookie {
	c, _ := ctx.Value(cookieKey{}).(*Cookie)
	return c
}

// WithCookies gives requests with the header "X-Seckill-Session: cookie" their
// cookie. secure says whether the client's connection is encrypted.
func WithCookies(next http.Handler, secure func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get(cookieHeader), "cookie") {
			next.ServeHTTP(w, r)
			return
		}
		c := &Cookie{answer: w.Header(), secure: secure(r)}
		if sent, err := r.Cookie(c.name(refreshCookie)); err == nil {
			c.refresh = sent.Value
		}
		if sent, err := r.Cookie(c.name(deviceCookie)); err == nil {
			c.device = sent.Value
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), cookieKey{}, c)))
	})
}

// Sent is the refresh token that came with the request, "" when none did.
func (c *Cookie) Sent() string {
	if c == nil {
		return ""
	}
	return c.refresh
}

// Device is the device token that came with the request, "" when none did.
func (c *Cookie) Device() string {
	if c == nil {
		return ""
	}
	return c.device
}

// Set gives a refresh token to the browser.
func (c *Cookie) Set(token string, expires time.Time) {
	c.write(&http.Cookie{Name: refreshCookie, Value: token, Expires: expires}) //nolint:gosec // write sets the attributes
}

// SetDevice gives a device token to the browser.
func (c *Cookie) SetDevice(token string, expires time.Time) {
	c.write(&http.Cookie{Name: deviceCookie, Value: token, Expires: expires}) //nolint:gosec // write sets the attributes
}

// Clear deletes the refresh token. It does nothing on a nil cookie.
func (c *Cookie) Clear() {
	if c != nil {
		c.write(&http.Cookie{Name: refreshCookie, MaxAge: -1}) //nolint:gosec // write sets the attributes
	}
}

func (c *Cookie) name(name string) string {
	if c.secure {
		return hostPrefix + name
	}
	return name
}

// write replaces an earlier cookie of the same name in the answer.
func (c *Cookie) write(v *http.Cookie) {
	path := "/graphql"
	if c.secure {
		path = "/" // hostPrefix needs it
	}
	v.Name, v.Path, v.HttpOnly, v.Secure, v.SameSite = c.name(v.Name), path, true, c.secure, http.SameSiteStrictMode //nolint:gosec // Secure follows the request: the demo has no TLS
	c.answer["Set-Cookie"] = append(slices.DeleteFunc(c.answer["Set-Cookie"], func(line string) bool {
		return strings.HasPrefix(line, v.Name+"=")
	}), v.String())
}
