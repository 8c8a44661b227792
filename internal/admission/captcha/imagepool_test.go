package captcha

import (
	"bytes"
	"context"
	"encoding/base64"
	"image/color"
	"image/png"
	"strings"
	"sync"
	"testing"

	"seckill/internal/testenv"
)

func TestAnswersAreManyAndEven(t *testing.T) {
	t.Parallel()
	const least = 10_000
	answers := 1
	for range textLength {
		answers *= len(textAlphabet)
	}
	if answers < least || mathAnswers < least {
		t.Errorf("%d texts, %d results; want at least %d each", answers, mathAnswers, least)
	}
	for i, c := range textAlphabet {
		if strings.IndexRune(textAlphabet, c) != i {
			t.Errorf("%c is in the alphabet twice", c)
		}
	}
	for _, kind := range []Kind{Text, Math} {
		const draws = 20_000
		seen := map[string]int{}
		for range draws {
			_, answer, err := puzzle(kind)
			if err != nil {
				t.Fatal(err)
			}
			seen[answer]++
		}
		for answer, n := range seen {
			if n > 12 { // 20,000 answers: each comes once on average
				t.Errorf("%s: %q came %d times in %d", kind, answer, n, draws)
			}
		}
	}
}

func TestSumsAddUp(t *testing.T) {
	t.Parallel()
	for range 1000 {
		question, answer, err := puzzle(Math)
		if err != nil {
			t.Fatal(err)
		}
		a, b, ok := strings.Cut(strings.TrimSuffix(question, "=?"), "+")
		if !ok || atoi(a)+atoi(b) != atoi(answer) || len(b) != 2 {
			t.Fatalf("%s is not %s", question, answer)
		}
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

func TestPicturesCanBeShown(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s := service(t, conn, prefix)
	for _, kind := range []Kind{Text, Math} {
		c := create(t, s, Scope{Purpose: Register}, kind)
		data, ok := strings.CutPrefix(c.Image, "data:image/png;base64,")
		raw, err := base64.StdEncoding.DecodeString(data)
		if c.Kind != kind || !ok || err != nil || c.Parameters != "" {
			t.Fatalf("%s: %v, %.40s", c.Kind, err, c.Image)
		}
		img, err := png.Decode(bytes.NewReader(raw))
		if err != nil || img.Bounds().Dx() != pictureWidth || img.Bounds().Dy() != pictureHeight {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPoolIsFilledAheadAndNoPictureIsShownTwice(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s := service(t, conn, prefix)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	defer running.Wait()
	defer stop()
	seen := map[string]bool{}
	for range 3 * cap(s.images.text) {
		p := <-s.images.text
		if seen[p.image] {
			t.Fatal("a picture came twice")
		}
		seen[p.image] = true
	}
	for range cap(s.images.math) {
		<-s.images.math
	}
}

func TestWhenPicturesRunOutAProofOfWorkIsGiven(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s := service(t, conn, prefix)
	s.images.inline <- struct{}{} // another request is drawing
	scope := Scope{Purpose: Login}
	c := create(t, s, scope, Text)
	if c.Kind != ProofOfWork {
		t.Fatalf("got %s", c.Kind)
	}
	wantRight(t, s, scope, solve(t, c))
	<-s.images.inline
	if c := create(t, s, scope, Text); c.Kind != Text {
		t.Errorf("got %s although a picture can be drawn", c.Kind)
	}
}

// The pixels are read from the library's private field: this version still has it, and
// the encoded image equals the drawing.
func TestPicturesAreSmallAndWhatTheLibraryDrew(t *testing.T) {
	t.Parallel()
	s := newImagePool(1)
	item, err := s.driver.DrawCaptcha("k7m4x")
	if err != nil {
		t.Fatal(err)
	}
	drawn := raster(item)
	if drawn == nil {
		t.Fatal("this version of the library keeps its pixels elsewhere: pictures take four times as long")
	}
	shown, err := s.printer.print(item)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(shown, "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := png.Decode(bytes.NewReader(raw))
	if err != nil || written.Bounds() != drawn.Bounds() {
		t.Fatalf("%v, %v", written, err)
	}
	const near = 255/(cubeSide-1)/2 + 1 // half a step between shades
	for y := range pictureHeight {
		for x := range pictureWidth {
			want := drawn.NRGBAAt(x, y)
			if max(want.R, want.G, want.B)-min(want.R, want.G, want.B) > vivid/2 {
				continue // may be darkened
			}
			r, g, b, _ := written.At(x, y).RGBA()
			for _, pair := range [][2]int{{int(want.R), int(r >> 8)}, {int(want.G), int(g >> 8)}, {int(want.B), int(b >> 8)}} {
				if d := pair[0] - pair[1]; d < -near || d > near {
					t.Fatalf("at %d, %d: %v is shown for %v", x, y, written.At(x, y), want)
				}
			}
		}
	}
	if library := item.EncodeB64string(); len(shown) > len(library) {
		t.Errorf("%d bytes, %d as the library writes it", len(shown), len(library))
	}
}

func TestNoLetterIsTooPaleToRead(t *testing.T) {
	t.Parallel()
	for _, c := range newPrinter().palette {
		rgb := color.RGBAModel.Convert(c).(color.RGBA)
		spread := max(rgb.R, rgb.G, rgb.B) - min(rgb.R, rgb.G, rgb.B)
		if light := luminance(rgb); spread >= vivid && light > brightest {
			t.Errorf("%v gives off %.2f of the light that white does", c, light)
		}
	}
}

// Only one wide line is as pale as the paper, and no letters.
func TestNothingButTheAnswerLooksLikeLetters(t *testing.T) {
	t.Parallel()
	const solid = 80 // pixels: more than the soft edges of letters have of one shade
	s := newImagePool(1)
	for range 40 {
		item, err := s.driver.DrawCaptcha("k7m4x")
		if err != nil {
			t.Fatal(err)
		}
		drawn, pale := raster(item), map[color.NRGBA]int{}
		for y := range pictureHeight {
			for x := range pictureWidth {
				if c := drawn.NRGBAAt(x, y); min(c.R, c.G, c.B) >= 200 {
					pale[c]++
				}
			}
		}
		shades := 0
		for _, pixels := range pale {
			if pixels >= solid {
				shades++
			}
		}
		if shades > 2 {
			t.Fatalf("%d pale shades, want the paper's and the line's", shades)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	s := newImagePool(1)
	b.ReportAllocs()
	bytes := 0
	for b.Loop() {
		p, err := s.draw(Text)
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(p.image)
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/picture")
}
