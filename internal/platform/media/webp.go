package media

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/riff"
	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
)

// errTwoSizes rejects a WebP whose bit stream has another size than its canvas: the
// decoder allocates the size of the stream, but DecodeConfig reports the canvas.
var errTwoSizes = errors.New("the picture has two sizes")

// webpStreamSize returns the size of the first bit stream of a WebP file.
func webpStreamSize(raw []byte) (image.Point, error) {
	kind, chunks, err := riff.NewReader(bytes.NewReader(raw))
	if err != nil {
		return image.Point{}, fmt.Errorf("read WebP: %w", err)
	}
	if kind != (riff.FourCC{'W', 'E', 'B', 'P'}) {
		return image.Point{}, errors.New("read WebP: not a WebP file")
	}
	for {
		id, length, data, err := chunks.Next()
		if err != nil {
			return image.Point{}, fmt.Errorf("read WebP: %w", err)
		}
		switch id {
		case riff.FourCC{'V', 'P', '8', ' '}:
			return vp8Size(data, int(length))
		case riff.FourCC{'V', 'P', '8', 'L'}:
			head, err := vp8l.DecodeConfig(data)
			if err != nil {
				return image.Point{}, fmt.Errorf("read VP8L: %w", err)
			}
			return image.Pt(head.Width, head.Height), nil
		}
	}
}

func vp8Size(data io.Reader, length int) (image.Point, error) {
	d := vp8.NewDecoder()
	d.Init(data, length)
	head, err := d.DecodeFrameHeader()
	if err != nil {
		return image.Point{}, fmt.Errorf("read VP8: %w", err)
	}
	return image.Pt(head.Width, head.Height), nil
}
