package web_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/platform/accent"
	"seckill/web"
)

func logoFile(t *testing.T, name string, body []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func pngOf(t *testing.T, wide, high int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, wide, high))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestThePageHasTheBrandOfTheInstallation(t *testing.T) {
	t.Parallel()
	color, err := accent.Parse("#b3261e")
	if err != nil {
		t.Fatal(err)
	}
	logo, err := web.ReadLogo(logoFile(t, "logo.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><path d="M0 0h9"/></svg>`)))
	if err != nil {
		t.Fatal(err)
	}
	brand := web.Brand{Name: `Fox & Hare</script><title>`, Accent: color, Logo: logo}
	built, err := brand.Of(web.Trial())
	if err != nil {
		t.Fatal(err)
	}
	body, err := fs.ReadFile(built, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	page := string(body)
	for _, want := range []string{"<title>Fox &amp; Hare&lt;/script&gt;&lt;title&gt;</title>", "no money moves"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has not %s", want)
		}
	}
	_, after, _ := strings.Cut(page, `<script type="application/json" id="brand">`)
	data, _, _ := strings.Cut(after, "</script>")
	var got struct {
		Name string
		Logo web.Logo
		Dark *web.Logo
	}
	if err := json.Unmarshal([]byte(data), &got); err != nil || got.Name != brand.Name || got.Logo != *logo || got.Dark != nil {
		t.Errorf("data of the page: %+v, %v", got, err)
	}
	if logo.Width != 64 || logo.Height != 32 || !strings.HasPrefix(logo.Source, "data:image/svg+xml;base64,") {
		t.Errorf("logo: %+v", logo)
	}
	_, after, _ = strings.Cut(page, "<style>")
	style, _, _ := strings.Cut(after, "</style>")
	sum := sha256.Sum256([]byte(style))
	if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; brand.StyleSource() != want {
		t.Errorf("source %s, want %s", brand.StyleSource(), want)
	}
	for _, want := range []string{"--color-fill:light-dark(#b3261e,", "--color-press:light-dark(", "--color-accent:light-dark(#b3261e,"} {
		if !strings.Contains(style, want) {
			t.Errorf("%s has not %s", style, want)
		}
	}
	body, err = fs.ReadFile(built, "manifest.webmanifest")
	if err != nil {
		t.Fatal(err)
	}
	app := readManifest(t, body)
	if app.Name != brand.Name || app.ShortName != brand.Name || app.ThemeColor != "#b3261e" || app.StartURL != "/" || len(app.Icons) != 3 {
		t.Errorf("manifest %s", body)
	}
	if other, err := fs.ReadFile(built, "robots.txt"); err != nil || len(other) == 0 {
		t.Errorf("other files: %q, %v", other, err)
	}
}

func TestWithoutABrandNothingIsAddedToTheStyles(t *testing.T) {
	t.Parallel()
	if b := (web.Brand{Name: "Shop"}); b.IsZero() || b.StyleSource() != "" || !(web.Brand{}).IsZero() {
		t.Errorf("%+v: %q", b, b.StyleSource())
	}
}

func TestALogoIsSmallAndHasItsSize(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]int{"wide.png": {160, 16}, "high.png": {8, 32}} {
		size := map[string][2]int{"wide.png": {400, 40}, "high.png": {20, 80}}[name]
		logo, err := web.ReadLogo(logoFile(t, name, pngOf(t, size[0], size[1])))
		if err != nil || logo.Width != want[0] || logo.Height != want[1] {
			t.Errorf("%s: %+v, %v", name, logo, err)
		}
	}
	for name, c := range map[string]struct {
		file string
		body []byte
		want string
	}{
		"large":        {"logo.svg", make([]byte, 16*1024+1), "has 16385 bytes"},
		"no picture":   {"logo.png", []byte("GIF89a"), "is no PNG"},
		"page":         {"logo.svg", []byte("<html></html>"), "is no SVG"},
		"without size": {"logo.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="100%"/>`), "has no size"},
	} {
		if _, err := web.ReadLogo(logoFile(t, c.file, c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := web.ReadLogo(filepath.Join(t.TempDir(), "none.svg")); err == nil {
		t.Error("a missing file is no error")
	}
}
