package captcha

import (
	"bytes"
	"context"
	"crypto/rand"
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

// pool returns an empty pool.
func pool(t testing.TB) *imagePool {
	t.Helper()
	p, err := newImagePool(1, []byte(rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPicturesAreSmallAndShowWhatWasDrawn(t *testing.T) {
	t.Parallel()
	s := pool(t)
	drawn, err := s.artist.draw("k7m4x")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := s.printer.print(drawn)
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
			want := drawn.RGBAAt(x, y)
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
	if len(shown) > 10_000 {
		t.Errorf("a picture of %d bytes", len(shown))
	}
}

// Each character of the question is in the picture, and no text is drawn twice the same way.
func TestEveryLetterIsInThePicture(t *testing.T) {
	t.Parallel()
	s := pool(t)
	for _, text := range []string{"k7m4x", "wwwww", "yqpjd", "12345+67=?"} {
		drawn, err := s.artist.draw(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.artist.draw(text)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(drawn.Pix, again.Pix) {
			t.Errorf("%s is drawn the same way twice", text)
		}
		step := (pictureWidth - 2*margin) / len(text)
		for i := range text {
			inked := 0
			for x := margin + i*step; x < margin+(i+1)*step; x++ {
				for y := range pictureHeight {
					if drawn.RGBAAt(x, y) != paper {
						inked++
					}
				}
			}
			if least := s.artist.curves*s.artist.thick*step/2 + 20; inked < least {
				t.Errorf("%s: %d pixels at %c, want the curves and a letter", text, inked, text[i])
			}
		}
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

// Nothing but the paper is pale, so that nothing else looks like pale letters.
func TestNothingButTheAnswerLooksLikeLetters(t *testing.T) {
	t.Parallel()
	const solid = 80 // pixels: more than the soft edges of letters have of one shade
	s := pool(t)
	for range 40 {
		drawn, err := s.artist.draw("k7m4x")
		if err != nil {
			t.Fatal(err)
		}
		pale := map[color.RGBA]int{}
		for y := range pictureHeight {
			for x := range pictureWidth {
				if c := drawn.RGBAAt(x, y); min(c.R, c.G, c.B) >= 200 {
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
		if shades > 1 {
			t.Fatalf("%d pale shades, want the paper's", shades)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	s := pool(b)
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
