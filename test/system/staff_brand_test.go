package system_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/platform/config"
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
	fetch := func(path string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
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
		return res, string(text)
	}
	for _, page := range []string{"/", "/s/phone", "/orders/1", "/operate"} {
		res, text := fetch(page)
		for _, want := range []string{"<title>Fox</title>", `{"name":"Fox","logo":{"src":"data:image/svg+xml;base64,`, `"dark":{"src"`, "--color-fill:light-dark(#b3261e,"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has not %s", page, want)
			}
		}
		if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "style-src 'self' 'sha256-") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", page, csp)
		}
	}
	res, text := fetch("/manifest.webmanifest")
	if kind := res.Header.Get("Content-Type"); kind != "application/manifest+json" || !strings.Contains(text, `"name":"Fox"`) || !strings.Contains(text, `"theme_color":"#b3261e"`) {
		t.Errorf("manifest %s %s", kind, text)
	}
}
