package captcha

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"sync"
)

// cubeSide is the number of shades of red, green and blue in an image. With six, an
// image has one byte per pixel and still looks smooth.
const cubeSide = 6

// printer encodes drawings as data URLs.
type printer struct {
	palette color.Palette // all shades, red changing slowest; none too pale to read
	nearest [256]uint8    // nearest shade of a colour component
	png     png.Encoder
}

func newPrinter() *printer {
	p := &printer{png: png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: &buffers{}}}
	for n := range cubeSide * cubeSide * cubeSide {
		p.palette = append(p.palette, legible(color.RGBA{R: shade(n / (cubeSide * cubeSide)), G: shade(n / cubeSide),
			B: shade(n), A: 255}))
	}
	for v := range p.nearest {
		p.nearest[v] = uint8((v*(cubeSide-1) + 127) / 255)
	}
	return p
}

func shade(n int) uint8 { return uint8(n % cubeSide * 255 / (cubeSide - 1)) } // at most 255

const (
	// vivid is the minimum difference between the components of a colour that is not
	// grey: the paper is grey, the soft edges of letters nearly are.
	vivid = 102
	// brightest is the maximum luminance (WCAG) of such a colour: a third of the
	// paper's.
	brightest = 0.27
)

// legible darkens a colour that has too little contrast with the paper.
func legible(c color.RGBA) color.RGBA {
	if max(c.R, c.G, c.B)-min(c.R, c.G, c.B) < vivid {
		return c
	}
	if light := luminance(c); light > brightest {
		dim := math.Pow(brightest/light, 1/2.2)
		c.R, c.G, c.B = uint8(float64(c.R)*dim), uint8(float64(c.G)*dim), uint8(float64(c.B)*dim)
	}
	return c
}

// luminance returns the luminance of a colour, from 0 to 1.
func luminance(c color.RGBA) float64 {
	part := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
	return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
}

// buffers pools the encoder's buffers, which are larger than its output.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() *png.EncoderBuffer {
	kept, _ := b.pool.Get().(*png.EncoderBuffer)
	return kept
}

func (b *buffers) Put(kept *png.EncoderBuffer) { b.pool.Put(kept) }

// print encodes a drawing with one byte per pixel and little compression: full colours
// and high compression would take three quarters of the CPU time of an image, which would
// delay orders.
func (p *printer) print(drawn *image.RGBA) (dataURL string, err error) {
	small := image.NewPaletted(drawn.Bounds(), p.palette)
	for i := range small.Pix {
		rgb := drawn.Pix[4*i : 4*i+3 : 4*i+3]
		small.Pix[i] = (p.nearest[rgb[0]]*cubeSide+p.nearest[rgb[1]])*cubeSide + p.nearest[rgb[2]]
	}
	var out bytes.Buffer
	if err := p.png.Encode(&out, small); err != nil {
		return "", fmt.Errorf("write picture: %w", err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(out.Bytes()), nil
}
