package server_test

import (
	"net/http"
	"strings"
	"testing"

	"seckill/internal/app/server"
)

func TestPagesLoadFromOtherOriginsOnlyWhatTheOutsideCaptchaNeeds(t *testing.T) {
	t.Parallel()
	const check = "https://check.example https://*.check.example"
	h := newPublic(t, server.PublicOptions{
		Site: shop(t), Playground: true, CaptchaOrigins: []string{"https://check.example", "https://*.check.example"},
	})
	opened := call(t, h, http.MethodGet, "/").Header().Get("Content-Security-Policy")
	closed := call(t, newPublic(t, server.PublicOptions{Site: shop(t)}), http.MethodGet, "/").Header().Get("Content-Security-Policy")
	if strings.Contains(closed, "check.example") || strings.Contains(closed, "frame-src") {
		t.Errorf("without an outside captcha: %s", closed)
	}
	want := strings.NewReplacer("script-src 'self';", "script-src 'self' "+check+";", "style-src 'self';", "style-src 'self' "+check+";",
		"connect-src 'self';", "connect-src 'self' "+check+"; frame-src "+check+";").Replace(closed)
	if opened != want {
		t.Errorf("with an outside captcha:\n%s\nwant\n%s", opened, want)
	}
	for _, path := range []string{"/graphql", "/playground"} {
		if csp := call(t, h, http.MethodGet, path).Header().Get("Content-Security-Policy"); strings.Contains(csp, "check.example") {
			t.Errorf("%s: %s", path, csp)
		}
	}
}

func TestOnlyThePageOfAPaymentLoadsFromTheProvider(t *testing.T) {
	t.Parallel()
	const pay = "https://js.stripe.example https://*.stripe.example"
	h := newPublic(t, server.PublicOptions{
		Site: shop(t), Playground: true, PaymentOrigins: []string{"https://js.stripe.example", "https://*.stripe.example"},
	})
	closed := call(t, newPublic(t, server.PublicOptions{Site: shop(t)}), http.MethodGet, "/orders/ord_1/pay").Header()
	opened := call(t, h, http.MethodGet, "/orders/ord_1/pay").Header()
	want := strings.NewReplacer("script-src 'self';", "script-src 'self' "+pay+";", "style-src 'self';", "style-src 'self' "+pay+";",
		"connect-src 'self';", "connect-src 'self' "+pay+"; frame-src "+pay+";").Replace(closed.Get("Content-Security-Policy"))
	if got := opened.Get("Content-Security-Policy"); got != want || got == closed.Get("Content-Security-Policy") {
		t.Errorf("the page of a payment:\n%s\nwant\n%s", got, want)
	}
	if policy := opened.Get("Permissions-Policy"); !strings.Contains(policy, "payment=*") { // wallets of the browser
		t.Errorf("the page of a payment: %s", policy)
	}
	for _, path := range []string{"/", "/graphql", "/playground", "/orders/ord_1", "/orders//pay", "/orders/ord_1/pay/more", "/pay"} {
		got := call(t, h, http.MethodGet, path).Header()
		if strings.Contains(got.Get("Content-Security-Policy"), "stripe") || strings.Contains(got.Get("Permissions-Policy"), "payment=*") {
			t.Errorf("%s: %s %s", path, got.Get("Content-Security-Policy"), got.Get("Permissions-Policy"))
		}
	}
	if policy := closed.Get("Permissions-Policy"); !strings.Contains(policy, "payment=()") {
		t.Errorf("without a provider: %s", policy)
	}
}

func TestPagesMayHaveTheStyleSheetOfTheInstallationOnly(t *testing.T) {
	t.Parallel()
	const style = "'sha256-PYUPJ3g6vNRKfh1DYfUnXqAeQGT7ZFfrwRJJgPUCJxU='"
	closed := call(t, newPublic(t, server.PublicOptions{Site: shop(t)}), http.MethodGet, "/").Header().Get("Content-Security-Policy")
	got := call(t, newPublic(t, server.PublicOptions{Site: shop(t), Style: style}), http.MethodGet, "/").Header().Get("Content-Security-Policy")
	if want := strings.Replace(closed, "style-src 'self';", "style-src 'self' "+style+";", 1); got != want || got == closed {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
