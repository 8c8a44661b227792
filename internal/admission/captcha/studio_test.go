package captcha

import (
	"bytes"
	"context"
	"encoding/base64"
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
			if n > 12 { // of 20,000 answers each comes once on average
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
	for range 3 * cap(s.studio.text) {
		p := <-s.studio.text
		if seen[p.image] {
			t.Fatal("a picture came twice")
		}
		seen[p.image] = true
	}
	for range cap(s.studio.math) {
		<-s.studio.math
	}
}

func TestWhenPicturesRunOutAProofOfWorkIsGiven(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s := service(t, conn, prefix)
	s.studio.inline <- struct{}{} // somebody else draws on the spot
	scope := Scope{Purpose: Login}
	c := create(t, s, scope, Text)
	if c.Kind != ProofOfWork {
		t.Fatalf("got %s", c.Kind)
	}
	wantRight(t, s, scope, solve(t, c))
	<-s.studio.inline
	if c := create(t, s, scope, Text); c.Kind != Text {
		t.Errorf("got %s although a picture can be drawn", c.Kind)
	}
}

func BenchmarkDraw(b *testing.B) {
	s := newStudio(1)
	for b.Loop() {
		if _, err := s.draw(Text); err != nil {
			b.Fatal(err)
		}
	}
}
