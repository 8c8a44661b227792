package captcha

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"math/rand/v2"
	"unicode/utf8"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/f64"
	"golang.org/x/image/math/fixed"
)

const (
	margin = 8 // pixels at the left and the right edge
	// largest is the size of the largest letters in pixels, and widest their size relative to the
	// distance between them.
	largest = 56.0
	widest  = 1.55
	// turn is how far a letter is turned at most, in radians: no letter of the alphabet
	// becomes another one.
	turn = 0.32
	// curves cross the letters in their colours, so that colour does not separate them

	curves = 3
	// wave is how far columns are moved up or down at most, in pixels.
	wave = 4.0
)

// paper is the background of images.
var paper = color.RGBA{R: 245, G: 247, B: 250, A: 255} // a constant

// artist draws texts. It is safe for concurrent use. Its random numbers place and colour
// letters; the text is not from them.
type artist struct{ fonts []*opentype.Font }

func newArtist() (*artist, error) {
	a := &artist{}
	for _, ttf := range [][]byte{gobold.TTF, gobolditalic.TTF, gomonobold.TTF} {
		parsed, err := opentype.Parse(ttf)
		if err != nil {
			return nil, fmt.Errorf("parse font: %w", err)
		}
		a.fonts = append(a.fonts, parsed)
	}
	return a, nil
}

// draw returns an image of the text: each letter in a font, size, angle and colour of its
// own, crossed by curves, on a wavy ground.
func (a *artist) draw(text string) (*image.RGBA, error) {
	flat := image.NewRGBA(image.Rect(0, 0, pictureWidth, pictureHeight))
	draw.Draw(flat, flat.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	step := float64(pictureWidth-2*margin) / float64(utf8.RuneCountInString(text))
	size := min(largest, step*widest)
	at := margin + step/2
	for _, letter := range text {
		if err := a.letter(flat, letter, at+between(-.08, .08)*step, size*between(.8, 1.05)); err != nil {
			return nil, err
		}
		at += step
	}
	for range curves {
		curve(flat)
	}
	return wavy(flat), nil
}

// letter draws a letter with its middle at x.
func (a *artist) letter(onto *image.RGBA, letter rune, x, size float64) error {
	face, err := opentype.NewFace(a.fonts[rand.IntN(len(a.fonts))], &opentype.FaceOptions{Size: size, DPI: 72}) //nolint:gosec // a font, not a secret
	if err != nil {
		return fmt.Errorf("size font: %w", err)
	}
	defer face.Close()
	const side = pictureHeight
	alone := image.NewRGBA(image.Rect(0, 0, side, side))
	width, _ := face.GlyphAdvance(letter)
	pen := font.Drawer{
		Dst: alone, Src: image.NewUniform(ink()), Face: face,
		Dot: fixed.Point26_6{X: fixed.I(side/2) - width/2, Y: fixed.I(side/2 + int(size*.35))},
	}
	box, _ := pen.BoundString(string(letter))
	pen.DrawString(string(letter))
	sin, cos := math.Sincos(between(-turn, turn))
	y := pictureHeight/2 + between(-.09, .09)*pictureHeight
	const middle = side / 2
	xdraw.ApproxBiLinear.Transform(onto, f64.Aff3{
		cos, -sin, x - middle*(cos-sin),
		sin, cos, y - middle*(sin+cos),
	}, alone, image.Rect(box.Min.X.Floor()-1, box.Min.Y.Floor()-1, box.Max.X.Ceil()+1, box.Max.Y.Ceil()+1).Intersect(alone.Bounds()), xdraw.Over, nil)
	return nil
}

// curve draws a sine curve of two to three pixels from the left to the right edge.
func curve(onto *image.RGBA) {
	c, thick := ink(), 2+rand.IntN(2) //nolint:gosec // placing, not a secret
	height, swing := between(.25, .75)*pictureHeight, between(4, 16)
	length, phase := between(.5, 1.5)*pictureWidth, between(0, 2*math.Pi)
	for x := range pictureWidth {
		y := int(height + swing*math.Sin(2*math.Pi*float64(x)/length+phase))
		for i := range thick {
			onto.SetRGBA(x, y+i, c)
		}
	}
}

// wavy returns the image with its columns moved along a wave.
func wavy(flat *image.RGBA) *image.RGBA {
	out := image.NewRGBA(flat.Bounds())
	length, phase := between(.3, .6)*pictureWidth, between(0, 2*math.Pi)
	for x := range pictureWidth {
		shift := int(math.Round(wave * math.Sin(2*math.Pi*float64(x)/length+phase)))
		for y := range pictureHeight {
			c := paper
			if from := y + shift; from >= 0 && from < pictureHeight {
				c = flat.RGBAAt(x, from)
			}
			out.SetRGBA(x, y, c)
		}
	}
	return out
}

// ink returns a colour that is neither pale nor grey.
func ink() color.RGBA {
	channels := [3]uint8{uint8(rand.IntN(60)), uint8(60 + rand.IntN(90)), uint8(180 + rand.IntN(60))}   //nolint:gosec // a colour, not a secret
	rand.Shuffle(len(channels), func(i, j int) { channels[i], channels[j] = channels[j], channels[i] }) //nolint:gosec // a colour, not a secret
	return legible(color.RGBA{R: channels[0], G: channels[1], B: channels[2], A: 255})
}

// between returns a random number.
func between(low, high float64) float64 { return low + rand.Float64()*(high-low) } //nolint:gosec // placing, not a secret
