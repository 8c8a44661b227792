package auth

import (
	"context"
	"net/http"
	"strings"
	"time"
)

const (
	// cookieName is the cookie that carries a browser's refresh token.
	cookieName = "seckill_refresh"
	// cookieHeader asks for it. A foreign page cannot send it: a header of one's own
	// needs a preflight, which other origins are refused.
	cookieHeader = "X-Seckill-Session"
)

// Cookie carries a refresh token where no script can read it: HttpOnly, sent by
// pages of the same site alone, and to the API alone.
type Cookie struct {
	answer http.Header
	sent   string
	secure bool
}

type cookieKey struct{}

// CookieFrom returns the cookie of a request that asked for one; nil = tokens
// travel in bodies.
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
		if sent, err := r.Cookie(cookieName); err == nil {
			c.sent = sent.Value
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), cookieKey{}, c)))
	})
}

// Sent is the refresh token that came with the request, "" when none did.
func (c *Cookie) Sent() string {
	if c == nil {
		return ""
	}
	return c.sent
}

// Set hands a refresh token to the browser.
func (c *Cookie) Set(token string, expires time.Time) {
	c.write(&http.Cookie{Value: token, Expires: expires}) //nolint:gosec // write sets what guards it
}

// Clear takes it away. Nothing happens to a nil cookie.
func (c *Cookie) Clear() {
	if c != nil {
		c.write(&http.Cookie{MaxAge: -1}) //nolint:gosec // write sets what guards it
	}
}

func (c *Cookie) write(v *http.Cookie) { //nolint:gosec // Secure follows the request: the demo has no TLS
	v.Name, v.Path, v.HttpOnly, v.Secure, v.SameSite = cookieName, "/graphql", true, c.secure, http.SameSiteStrictMode
	c.answer.Set("Set-Cookie", v.String())
}
