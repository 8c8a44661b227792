package web

import (
	"regexp"
	"strings"
)

// routes are the patterns of the shop's pages, as in src/app.tsx and src/operator/pages.ts.
var routes = []string{
	"/", "/s/:slug", "/s/:slug/card", "/sign-in", "/register", "/forgot-password", "/reset-password", "/verify-email", "/account",
	"/orders", "/orders/:id", "/orders/:id/pay",
	"/operate", "/operate/sales", "/operate/new", "/operate/sales/:id", "/operate/sales/:id/edit",
	"/operate/sales/:id/bought", "/operate/sales/:id/report", "/operate/goods", "/operate/orders",
	"/operate/orders/:id", "/operate/inbox", "/operate/refunds", "/operate/aside", "/operate/people",
	"/operate/tokens", "/operate/webhooks", "/operate/webhooks/:id",
}

var (
	parameter = regexp.MustCompile(`:\w+`)
	page      = regexp.MustCompile(`(?i)^(` + parameter.ReplaceAllString(strings.Join(routes, "|"), "[^/]+") + `)/?$`)
)

// HasPage reports whether the shop has a page at a URL path.
func HasPage(path string) bool { return page.MatchString(path) }
