package captcha

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"math/rand/v2"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/gofont/gomonobolditalic"
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
	// turn is how far a letter is turned from the lean of the style at most, in radians. With the
	// greatest lean, no letter of the alphabet becomes another one.
	turn = 0.2
)

// fontFiles are the fonts of which a style has two.
var fontFiles = [...][]byte{gobold.TTF, gobolditalic.TTF, gomedium.TTF, gomonobold.TTF, gomonobolditalic.TTF}

// paper is the background of images.
var paper = color.RGBA{R: 245, G: 247, B: 250, A: 255} // a constant

// artist draws texts in a style. It is safe for concurrent use. Its random numbers place and
// colour letters; the text is not from them.
type artist struct {
	style
	fonts []*opentype.Font
}

func newArtist(s style) (*artist, error) {
	a := &artist{style: s}
	for _, i := range s.fonts {
		parsed, err := opentype.Parse(fontFiles[i])
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
	letters := []rune(text)
	step := float64(pictureWidth-2*margin) / float64(len(letters))
	if a.under {
		a.cross(flat)
	}
	for i := range letters {
		if a.backwards {
			i = len(letters) - 1 - i
		}
		at := place{
			x: margin + (float64(i)+.5+between(-a.spread, a.spread))*step, size: min(largest, step*widest) * between(.85, 1.05),
			y: pictureHeight/2 + a.rise*(2*math.Abs(float64(i)/float64(max(1, len(letters)-1))-.5)-.5) + between(-5, 5),
		}
		if err := a.letter(flat, letters[i], at); err != nil {
			return nil, err
		}
	}
	if !a.under {
		a.cross(flat)
	}
	return a.warp(flat), nil
}

// place is where the middle of a letter is, and its size, in pixels.
type place struct{ x, y, size float64 }

// letter draws a letter.
func (a *artist) letter(onto *image.RGBA, letter rune, at place) error {
	face, err := opentype.NewFace(a.fonts[rand.IntN(len(a.fonts))], &opentype.FaceOptions{Size: at.size, DPI: 72})
	if err != nil {
		return fmt.Errorf("size font: %w", err)
	}
	defer face.Close()
	const side = pictureHeight
	alone := image.NewRGBA(image.Rect(0, 0, side, side))
	width, _ := face.GlyphAdvance(letter)
	pen := font.Drawer{
		Dst: alone, Src: image.NewUniform(a.ink()), Face: face,
		Dot: fixed.Point26_6{X: fixed.I(side/2) - width/2, Y: fixed.I(side/2 + int(at.size*.35))},
	}
	box, _ := pen.BoundString(string(letter))
	pen.DrawString(string(letter))
	sin, cos := math.Sincos(a.lean + between(-turn, turn))
	// Stretched and slanted, then turned, around the middle.
	xx, xy, yx, yy := cos*a.stretch, -cos*a.slant-sin, sin*a.stretch, cos-sin*a.slant
	const middle = side / 2
	xdraw.ApproxBiLinear.Transform(onto, f64.Aff3{
		xx, xy, at.x - middle*(xx+xy),
		yx, yy, at.y - middle*(yx+yy),
	}, alone, image.Rect(box.Min.X.Floor()-1, box.Min.Y.Floor()-1, box.Max.X.Ceil()+1, box.Max.Y.Ceil()+1).
		Intersect(alone.Bounds()), xdraw.Over, nil)
	return nil
}

// cross draws curves from the left to the right edge, in the colours of letters, so that colour does
// not separate them.
func (a *artist) cross(onto *image.RGBA) {
	for range a.curves {
		c, thick := a.ink(), a.thick+rand.IntN(2)
		height, swing := between(.25, .75)*pictureHeight, a.swing*between(.7, 1.3)
		length, phase := a.length*between(.7, 1.3)*pictureWidth, between(0, 2*math.Pi)
		for x := range pictureWidth {
			y := int(height + swing*a.shape(2*math.Pi*float64(x)/length+phase))
			for i := range thick {
				onto.SetRGBA(x, y+i, c)
			}
		}
	}
}

// warp returns the image with its columns and rows moved along waves, and stripes left out.
func (a *artist) warp(flat *image.RGBA) *image.RGBA {
	out := image.NewRGBA(flat.Bounds())
	phase, swayPhase := between(0, 2*math.Pi), between(0, 2*math.Pi)
	var columns [pictureWidth]int
	for x := range columns {
		columns[x] = int(math.Round(a.wave * math.Sin(2*math.Pi*float64(x)/(a.waveLength*pictureWidth)+phase)))
	}
	left := 0
	if a.stripe > 0 {
		left = rand.IntN(a.stripe)
	}
	for y := range pictureHeight {
		row := int(math.Round(a.sway * math.Sin(2*math.Pi*float64(y)/(a.swayLength*pictureHeight)+swayPhase)))
		for x := range pictureWidth {
			c := paper
			from := image.Pt(x+row, y+columns[x])
			if from.In(flat.Bounds()) && (a.stripe == 0 || y%a.stripe != left) {
				c = flat.RGBAAt(from.X, from.Y)
			}
			out.SetRGBA(x, y, c)
		}
	}
	return out
}

// ink returns a colour that is neither pale nor grey.
func (a *artist) ink() color.RGBA {
	low, middle, high := uint8(rand.IntN(60)), uint8(60+rand.IntN(90)), uint8(180+rand.IntN(60))
	orders := [...][3]uint8{{low, middle, high}, {low, high, middle}, {middle, low, high}, {middle, high, low},
		{high, low, middle}, {high, middle, low}}
	c := orders[a.inks[rand.IntN(len(a.inks))]]
	return legible(color.RGBA{R: c[0], G: c[1], B: c[2], A: 255})
}

// between returns a random number.
func between(low, high float64) float64 { return low + rand.Float64()*(high-low) }

// style is what all images of an installation have in common. It follows from the installation's
// secret, so that a program trained on the images of one installation reads those of others worse.
type style struct {
	fonts     [2]int  // of fontFiles
	stretch   float64 // width of letters over that of their font
	slant     float64 // of letters, as the tangent of an angle
	lean      float64 // around which letters are turned, in radians
	rise      float64 // of the text from its middle to its ends, in pixels
	spread    float64 // how far a letter is from its place at most, over the distance between them
	backwards bool    // the last letter is painted first: an earlier one covers the next

	curves int                     // number of curves across the image
	thick  int                     // their least thickness, in pixels
	swing  float64                 // their height, in pixels
	length float64                 // of their period, over the width of the image
	shape  func(x float64) float64 // of period 2π, from -1 to 1
	under  bool                    // curves are painted before the letters

	wave, waveLength float64 // how far columns are moved, in pixels, and the period over the width
	sway, swayLength float64 // the same of rows, and the period over the height
	stripe           int     // rows between those left out of letters and curves; 0 = none is
	inks             [2]int  // orders of the color channels
}

// shapes are the forms of curves.
var shapes = [...]func(float64) float64{
	math.Sin,
	func(x float64) float64 { return 2 / math.Pi * math.Asin(math.Sin(x)) }, // zigzag
	func(x float64) float64 { return 2*math.Abs(math.Sin(x/2)) - 1 },        // arches
}

// styleOf returns the style of an installation.
func styleOf(secret []byte) style {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("style of images"))
	r := rand.New(rand.NewChaCha8([32]byte(mac.Sum(nil)))) // the seed is the secret
	in := func(low, high float64) float64 { return low + r.Float64()*(high-low) }
	side := func(low, high float64) float64 { return in(low, high) * float64(2*r.IntN(2)-1) }
	coin := func() bool { return r.IntN(2) == 0 }
	s := style{
		stretch: in(.8, 1.15), slant: side(.05, .35), lean: side(.03, .2), rise: side(2, 8), spread: in(.03, .1),
		backwards: coin(),
		curves:    2 + r.IntN(2), thick: 1 + r.IntN(2), swing: in(4, 18), length: in(.3, 1.5),
		shape: shapes[r.IntN(len(shapes))], under: coin(),
		wave: in(1.5, 4.5), waveLength: in(.2, .6), sway: in(0, 3), swayLength: in(.3, 1),
		fonts: [2]int(r.Perm(len(fontFiles))[:2]), inks: [2]int(r.Perm(6)[:2]),
	}
	if coin() {
		s.stripe = 6 + r.IntN(4)
	}
	return s
}
