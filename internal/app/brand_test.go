package app_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/config"
)

func TestEveryPageHasTheBrandOfTheInstallation(t *testing.T) {
	t.Parallel()
	logo := filepath.Join(t.TempDir(), "logo.svg")
	if err := os.WriteFile(logo, []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="60" height="30"/>`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(c *config.Config) {
		c.ShopName, c.ThemeAccent, c.ThemeLogo, c.ThemeLogoDark = "Fox", "#b3261e", logo, logo
	})
	s.start("api")
	for _, page := range []string{"/", "/s/phone", "/orders/1", "/operate"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		res, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<title>Fox</title>", `{"name":"Fox","logo":{"src":"data:image/svg+xml;base64,`, `"dark":{"src"`, "--color-fill:light-dark(#b3261e,"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has not %s", page, want)
			}
		}
		if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "style-src 'self' 'sha256-") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", page, csp)
		}
	}
}
