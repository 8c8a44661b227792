package captcha

import (
	"crypto/hmac"
	"crypto/sha256"
	"math"
	"math/rand/v2"
)

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
	r := rand.New(rand.NewChaCha8([32]byte(mac.Sum(nil)))) //nolint:gosec // the seed is the secret
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
