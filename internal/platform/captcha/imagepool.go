package captcha

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"image"
	"math/big"
	"strconv"
	"time"
)

const (
	// defaultPoolSize covers a burst of a thousand requests for the same kind.
	defaultPoolSize = 1024
	// Drawing an image takes most of a millisecond of CPU, which delays orders. While a
	// pool is more than half full, one image is drawn per drawPause, with little
	// effect; below, one per refillPause: enough for 250 requests a second.
	drawPause   = 10 * time.Millisecond
	refillPause = 3 * time.Millisecond

	// ImageWait bounds the wait of a request that may have no proof of work instead.
	ImageWait = 2 * time.Second

	pictureWidth  = 240
	pictureHeight = 80

	textLength = 5
	// textAlphabet has no two characters that look alike in a used font: 26^5 = 11.9
	// million answers.
	textAlphabet = "346789abcdefhjkmnpqrtuvwxy"

	// A sum is answer − addend + addend, with every answer equally likely, so that no
	// guess is better than 1 in mathAnswers.
	mathLowest  = 10_000
	mathAnswers = 20_000
	mathAddend  = 90 // addends 10 to 99
)

var errNoImage = errors.New("images are requested faster than they are drawn")

// picture is a drawn challenge that was not used yet. It is used once.
type picture struct {
	kind   Kind
	answer string
	image  string // data URL
}

// imagePool draws images, usually in advance.
type imagePool struct {
	artist  *artist
	printer *printer
	text    chan picture
	math    chan picture
	inline  chan struct{} // capacity 1: an image drawn during a request
	wait    time.Duration // how long a request may wait that may have no proof of work instead
}

func newImagePool(size int, secret []byte) (*imagePool, error) {
	artist, err := newArtist(styleOf(secret))
	return &imagePool{
		artist: artist, printer: newPrinter(),
		text:   make(chan picture, size),
		math:   make(chan picture, size),
		inline: make(chan struct{}, 1),
		wait:   ImageWait,
	}, err
}

// run keeps both pools full. One goroutine draws one image at a time, with pauses, so
// that many captcha requests take little CPU from orders.
func (s *imagePool) run(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	var next [2]picture
	for {
		for i, kind := range []Kind{Text, Math} {
			if next[i].image != "" {
				continue
			}
			var err error
			if next[i], err = s.draw(kind); err != nil {
				return err
			}
			select {
			case <-pause.C:
				pause.Reset(s.pause())
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case s.text <- next[0]:
			next[0] = picture{}
		case s.math <- next[1]:
			next[1] = picture{}
		case <-ctx.Done():
			return nil
		}
	}
}

// pause returns the wait before the image after the next one.
func (s *imagePool) pause() time.Duration {
	if min(len(s.text), len(s.math)) < cap(s.text)/2 {
		return refillPause
	}
	return drawPause
}

// take returns an image from the pool, or draws one if no other request is drawing. If
// neither is possible, because images are requested faster than they are drawn, it
// returns false; with wait, it waits up to s.wait first, and fails then.
func (s *imagePool) take(ctx context.Context, kind Kind, wait bool) (picture, bool, error) {
	pool := s.text
	if kind == Math {
		pool = s.math
	}
	select {
	case p := <-pool:
		return p, true, nil
	default:
	}
	select {
	case s.inline <- struct{}{}:
		defer func() { <-s.inline }()
		p, err := s.draw(kind)
		return p, err == nil, err
	default:
	}
	if !wait {
		return picture{}, false, nil
	}
	late := time.NewTimer(s.wait)
	defer late.Stop()
	select {
	case p := <-pool:
		return p, true, nil
	case s.inline <- struct{}{}:
		defer func() { <-s.inline }()
		p, err := s.draw(kind)
		return p, err == nil, err
	case <-late.C:
		return picture{}, false, unavailable("take image", errNoImage)
	case <-ctx.Done():
		return picture{}, false, unavailable("take image", ctx.Err())
	}
}

// draw creates an image. The answer comes from crypto/rand.
func (s *imagePool) draw(kind Kind) (picture, error) {
	question, answer, err := puzzle(kind)
	if err != nil {
		return picture{}, err
	}
	drawn, err := s.artist.draw(question)
	if err != nil {
		return picture{}, fmt.Errorf("draw: %w", err)
	}
	shown, err := s.printer.print(drawn)
	return picture{kind: kind, answer: answer, image: shown}, err
}

// Sample draws n images of texts as an installation with a secret does, and returns them with their
// answers, to measure how well programs read them.
func Sample(secret []byte, n int) (images []*image.RGBA, answers []string, err error) {
	artist, err := newArtist(styleOf(secret))
	if err != nil {
		return nil, nil, err
	}
	images, answers = make([]*image.RGBA, n), make([]string, n)
	for i := range n {
		text, _, err := puzzle(Text)
		if err != nil {
			return nil, nil, err
		}
		if images[i], err = artist.draw(text); err != nil {
			return nil, nil, err
		}
		answers[i] = text
	}
	return images, answers, nil
}

// puzzle returns the text of an image and its answer.
func puzzle(kind Kind) (question, answer string, err error) {
	if kind == Math {
		result, err := randomBelow(mathAnswers)
		if err != nil {
			return "", "", err
		}
		addend, err := randomBelow(mathAddend)
		if err != nil {
			return "", "", err
		}
		result, addend = result+mathLowest, addend+10
		return fmt.Sprintf("%d+%d=?", result-addend, addend), strconv.FormatInt(result, 10), nil
	}
	text := make([]byte, textLength)
	for i := range text {
		n, err := randomBelow(int64(len(textAlphabet)))
		if err != nil {
			return "", "", err
		}
		text[i] = textAlphabet[n]
	}
	return string(text), string(text), nil
}

// randomBelow returns a uniform random number from 0 to n−1.
func randomBelow(n int64) (int64, error) {
	v, err := rand.Int(rand.Reader, big.NewInt(n))
	if err != nil {
		return 0, fmt.Errorf("random number: %w", err)
	}
	return v.Int64(), nil
}
