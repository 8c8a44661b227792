package web_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/vector"

	"seckill/web"
)

// drawIcons writes the icons of the manifest; `npm run build` then copies them:
//
//	go test ./web -run TestTheIcons -icons
var drawIcons = flag.Bool("icons", false, "write public/assets/icon-*.png from icon.svg")

// appManifest is a web app manifest.
type appManifest struct {
	ID, Scope, Display string
	Name               string
	ShortName          string `json:"short_name"`
	StartURL           string `json:"start_url"`
	ThemeColor         string `json:"theme_color"`
	Icons              []struct{ Src, Sizes, Type, Purpose string }
}

func readManifest(t *testing.T, body []byte) appManifest {
	t.Helper()
	var m appManifest
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("manifest %s: %v", body, err)
	}
	return m
}

func TestTheManifestMakesTheShopInstallable(t *testing.T) {
	t.Parallel()
	page, err := fs.ReadFile(web.Dist(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), `<link rel="manifest" href="/manifest.webmanifest"`) {
		t.Error("the page does not name the manifest")
	}
	body, err := fs.ReadFile(web.Dist(), "manifest.webmanifest")
	if err != nil {
		t.Fatal(err)
	}
	m := readManifest(t, body)
	if m.Name == "" || m.ID != "/" || m.StartURL != "/" || m.Scope != "/" || m.Display != "standalone" {
		t.Errorf("manifest %s", body)
	}
	sizes := map[string]bool{}
	for _, icon := range m.Icons {
		file, err := fs.ReadFile(web.Dist(), strings.TrimPrefix(icon.Src, "/"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := png.DecodeConfig(bytes.NewReader(file))
		if got := strconv.Itoa(c.Width) + "x" + strconv.Itoa(c.Height); err != nil || got != icon.Sizes || icon.Type != "image/png" {
			t.Errorf("%s is %s, %v", icon.Src, got, err)
		}
		sizes[icon.Purpose+icon.Sizes] = true
	}
	for _, want := range []string{"192x192", "512x512", "maskable512x512"} {
		if !sizes[want] {
			t.Errorf("no icon %s: %v", want, sizes)
		}
	}
}

func TestTheIconsAreThoseOfTheTab(t *testing.T) {
	t.Parallel()
	svg, err := os.ReadFile("public/assets/icon.svg")
	if err != nil {
		t.Fatal(err)
	}
	mark := regexp.MustCompile(`<path d="([^"]+)" fill="#fff"/>`).FindStringSubmatch(string(svg))
	if mark == nil || !strings.Contains(string(svg), `viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#111"/>`) {
		t.Fatalf("icon.svg has another form: %s", svg)
	}
	for _, icon := range []struct {
		file    string
		size    int
		rounded bool
	}{{"icon-192.png", 192, true}, {"icon-512.png", 512, true}, {"icon-maskable.png", 512, false}} {
		drawn := drawIcon(t, mark[1], icon.size, icon.rounded)
		file := filepath.Join("public", "assets", icon.file)
		if *drawIcons {
			if err := os.WriteFile(file, drawn, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(file)
		if err != nil || !look(t, committed, drawn) {
			t.Errorf("%s is not drawn from icon.svg, %v: go test ./web -run TestTheIcons -icons, then npm run build", file, err)
		}
	}
}

// look reports whether two pictures look the same: their bytes and the shades of their
// edges may differ between releases of Go.
func look(t *testing.T, a, b []byte) bool {
	t.Helper()
	first, err := png.Decode(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	second, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if first.Bounds() != second.Bounds() {
		return false
	}
	const most = 0x0400 // of 0xffff
	near := func(a, b uint32) bool { return max(a, b)-min(a, b) <= most }
	for y := range first.Bounds().Dy() {
		for x := range first.Bounds().Dx() {
			r1, g1, b1, a1 := first.At(x, y).RGBA()
			r2, g2, b2, a2 := second.At(x, y).RGBA()
			if !near(r1, r2) || !near(g1, g2) || !near(b1, b2) || !near(a1, a2) {
				return false
			}
		}
	}
	return true
}

// side is the side of icon.svg, and round the radius of its corners.
const (
	side  = 32
	round = 8
)

// drawIcon draws the mark on its ground, in pixels.
func drawIcon(t *testing.T, mark string, size int, rounded bool) []byte {
	t.Helper()
	scale := float32(size) / side
	picture := image.NewNRGBA(image.Rect(0, 0, size, size))
	fill := func(v *vector.Rasterizer, shade uint8) {
		v.Draw(picture, picture.Bounds(), image.NewUniform(color.Gray{shade}), image.Point{})
	}
	if rounded {
		v := vector.NewRasterizer(size, size)
		roundedSquare(v, float32(size), round*scale)
		fill(v, 0x11)
	} else {
		draw.Draw(picture, picture.Bounds(), image.NewUniform(color.Gray{0x11}), image.Point{}, draw.Src)
	}
	v := vector.NewRasterizer(size, size)
	follow(t, v, mark, scale)
	fill(v, 0xff)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// roundedSquare adds a square with round corners.
func roundedSquare(v *vector.Rasterizer, size, r float32) {
	const arc = 0.5523 // of a quarter circle as a cubic curve
	k := r * (1 - arc)
	v.MoveTo(r, 0)
	v.LineTo(size-r, 0)
	v.CubeTo(size-k, 0, size, k, size, r)
	v.LineTo(size, size-r)
	v.CubeTo(size, size-k, size-k, size, size-r, size)
	v.LineTo(r, size)
	v.CubeTo(k, size, 0, size-k, 0, size-r)
	v.LineTo(0, r)
	v.CubeTo(0, k, k, 0, r, 0)
	v.ClosePath()
}

// follow adds a path of straight lines: M, L, l, H, h, V, v and z.
func follow(t *testing.T, v *vector.Rasterizer, path string, scale float32) {
	t.Helper()
	var x, y float32
	for _, part := range regexp.MustCompile(`[MLlHhVvz][^MLlHhVvz]*`).FindAllString(path, -1) {
		var n []float32
		for _, text := range regexp.MustCompile(`-?\d*\.?\d+`).FindAllString(part[1:], -1) {
			f, err := strconv.ParseFloat(text, 32)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, float32(f))
		}
		for first := true; first || len(n) > 0; first = false {
			switch part[0] {
			case 'z':
				v.ClosePath()
			case 'H':
				x, n = n[0], n[1:]
			case 'h':
				x, n = x+n[0], n[1:]
			case 'V':
				y, n = n[0], n[1:]
			case 'v':
				y, n = y+n[0], n[1:]
			case 'l':
				x, y, n = x+n[0], y+n[1], n[2:]
			default:
				x, y, n = n[0], n[1], n[2:]
			}
			switch {
			case part[0] == 'M' && first:
				v.MoveTo(x*scale, y*scale)
			case part[0] != 'z':
				v.LineTo(x*scale, y*scale)
			}
		}
	}
}
