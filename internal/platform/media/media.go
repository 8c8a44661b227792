// Package media stores the pictures of products: it decodes an upload, encodes a clean
// picture of bounded size, stores that on disk or in S3, and serves it.
//
// A picture is named after the hash of its content: equal pictures are stored once,
// none is ever replaced, and browsers and CDNs may cache them without limit. Encoding
// removes all metadata, such as the location of a photograph; its orientation is applied
// before, and its colour profile stays, without which its colours would change. The package knows neither
// products nor roles.
package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // accepted, and stored as PNG
	"image/jpeg"
	"image/png"
	"io"
	"regexp"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // accepted, and stored as PNG or JPEG

	"seckill/internal/platform/fault"
)

// Bounds of a picture.
const (
	// MaxBytes bounds uploads and stored files. Stores return no more than this.
	MaxBytes = 8 << 20
	// maxPixels bounds the decoded picture: 24 million pixels need about 100 MB for a
	// short time.
	maxPixels = 24_000_000
	// freePixels and pixelsPerByte bound the pixels of a picture by its length, so that
	// 50 bytes cannot cost 300 MB: a WebP of one colour has the same length at any
	// size. A photograph has fewer than 20 pixels per byte, a single colour in a 24-bit
	// PNG 340.
	freePixels    = 1_000_000
	pixelsPerByte = 1_000
	// maxSide is the longest side of a stored picture; larger pictures are scaled down.
	// At half of it any picture is far below MaxBytes: 800 × 800 pixels of 4 bytes.
	maxSide = 1600
	// decodesAtOnce bounds how many pictures a process decodes concurrently.
	decodesAtOnce = 2
	jpegQuality   = 85
)

// Path is the URL path of pictures.
const Path = "/media/"

// ErrNotFound reports that no picture has that name.
var ErrNotFound = errors.New("no such picture")

var nameFormat = regexp.MustCompile(`^[0-9a-f]{40}\.(png|jpg)$`)

// Store stores files under names derived from their content.
type Store interface {
	// Put stores a file. Repeating it changes nothing.
	Put(ctx context.Context, name, contentType string, body []byte) error
	// Get returns a file; the error wraps ErrNotFound when it does not exist.
	Get(ctx context.Context, name string) ([]byte, error)
}

// Service stores and serves pictures. It is safe for concurrent use.
type Service struct {
	store Store
	slots chan struct{}
}

// New returns a service on a store.
func New(store Store) *Service {
	return &Service{store: store, slots: make(chan struct{}, decodesAtOnce)}
}

// Save stores the picture in a body and returns its path on this server. It refuses a
// body that is too large or not a picture with fault.BadField.
func (s *Service) Save(ctx context.Context, body io.Reader) (address string, err error) {
	raw, err := io.ReadAll(io.LimitReader(body, MaxBytes+1))
	if err != nil {
		return "", fault.Wrap(fault.BadInput, "The picture is incomplete.", err)
	}
	if len(raw) > MaxBytes {
		return "", bad(fault.Rule{Code: fmt.Sprintf("at most %d bytes", MaxBytes)})
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return "", fmt.Errorf("save picture: %w", ctx.Err())
	}
	clean, kind, err := cleaned(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(clean)
	name := hex.EncodeToString(sum[:20]) + "." + kind
	if err := s.store.Put(ctx, name, contentType(name), clean); err != nil {
		return "", fault.Wrap(fault.Unavailable, "The picture could not be stored. Please try again.", err)
	}
	return Path + name, nil
}

func bad(rule fault.Rule) error {
	return fault.BadField{At: []string{"picture"}, Rule: rule}
}

// cleaned decodes a picture and encodes it again, scaled down if necessary.
func cleaned(raw []byte) (clean []byte, kind string, err error) {
	size, err := declaredSize(raw)
	if err != nil {
		return nil, "", err
	}
	picture, format, err := image.Decode(bytes.NewReader(raw))
	if err != nil || picture.Bounds().Size() != size {
		return nil, "", bad(fault.Rule{Code: "a whole PNG, JPEG, GIF or WebP picture"})
	}
	var icc []byte
	// those are encoded in other colours
	if model := picture.ColorModel(); model != color.GrayModel && model != color.Gray16Model && model != color.CMYKModel {
		icc = profile(raw, format)
	}
	picture = upright(shrunk(picture, maxSide), orientation(raw, format))
	clean, kind, err = encoded(picture)
	if err == nil && len(clean)+len(icc) > MaxBytes { // noise in grey or few colours grows when it is encoded
		clean, kind, err = encoded(shrunk(picture, maxSide/2))
	}
	if err != nil {
		return nil, "", fmt.Errorf("encode picture: %w", err)
	}
	return withProfile(clean, kind, icc), kind, nil
}

// declaredSize returns the size that decoding will allocate, or rejects the picture
// before that allocation.
func declaredSize(raw []byte) (image.Point, error) {
	head, format, err := image.DecodeConfig(bytes.NewReader(raw))
	size := image.Pt(head.Width, head.Height)
	if err == nil && format == "webp" {
		var stream image.Point
		if stream, err = webpStreamSize(raw); err == nil && stream != size {
			err = errTwoSizes
		}
	}
	switch {
	case err != nil:
		return size, bad(fault.Rule{Code: "a PNG, JPEG, GIF or WebP picture"})
	case size.X < 1 || size.Y < 1 || size.X > maxPixels/size.Y:
		return size, bad(fault.Rule{Code: fmt.Sprintf("at most %d pixels", maxPixels)})
	case size.X*size.Y > freePixels+len(raw)*pixelsPerByte:
		return size, bad(fault.Rule{Code: fmt.Sprintf("at most %d pixels for each byte", pixelsPerByte)})
	}
	return size, nil
}

// encoded encodes a picture as JPEG, or as PNG when it has transparent pixels.
func encoded(picture image.Image) (body []byte, kind string, err error) {
	var out bytes.Buffer
	if opaque(picture) {
		kind, err = "jpg", jpeg.Encode(&out, picture, &jpeg.Options{Quality: jpegQuality})
	} else {
		kind, err = "png", png.Encode(&out, picture)
	}
	return out.Bytes(), kind, err
}

// shrunk scales down a picture whose longest side is above side.
func shrunk(picture image.Image, side int) image.Image {
	size := picture.Bounds().Size()
	longest := max(size.X, size.Y)
	if longest <= side {
		return picture
	}
	small := image.NewNRGBA(image.Rect(0, 0, max(1, size.X*side/longest), max(1, size.Y*side/longest)))
	draw.CatmullRom.Scale(small, small.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	return small
}

func opaque(picture image.Image) bool {
	o, ok := picture.(interface{ Opaque() bool })
	return ok && o.Opaque()
}

func contentType(name string) string {
	if name[len(name)-3:] == "png" {
		return "image/png"
	}
	return "image/jpeg"
}
