package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"io"

	"github.com/bep/imagemeta"
	"golang.org/x/image/draw"
	"golang.org/x/image/riff"
	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
)

// maxProfile bounds a colour profile. Those of cameras and screens have a few kilobytes,
// those of printers up to 3 MB; they are not needed here.
const maxProfile = 512 << 10

// Markers around a colour profile, ICC.1:2022 annex B.
var (
	jpegProfile = []byte("ICC_PROFILE\x00")
	pngHeader   = []byte("\x89PNG\r\n\x1a\n")
)

// orientation returns how a photograph is turned, as in EXIF: 1 to 8; 1 = not at all.
func orientation(raw []byte, format string) (turned int) {
	kinds := map[string]imagemeta.ImageFormat{"jpeg": imagemeta.JPEG, "png": imagemeta.PNG, "webp": imagemeta.WebP}
	kind, known := kinds[format]
	if !known {
		return 1
	}
	turned = 1
	_, _ = imagemeta.Decode(imagemeta.Options{ // broken metadata does not make a broken picture
		R: bytes.NewReader(raw), ImageFormat: kind, Sources: imagemeta.EXIF, Warnf: func(string, ...any) {},
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool { return tag.Tag == "Orientation" && tag.Namespace == "IFD0" },
		HandleTag: func(tag imagemeta.TagInfo) error {
			if n, ok := tag.Value.(uint16); ok && n >= 1 && n <= 8 {
				turned = int(n)
			}
			return imagemeta.ErrStopWalking
		},
	})
	return turned
}

// upright returns a picture as it was taken: mirrored or turned by an orientation of EXIF.
func upright(picture image.Image, turned int) image.Image {
	if turned == 1 {
		return picture
	}
	from := picture.Bounds()
	w, h := from.Dx(), from.Dy()
	size := image.Rect(0, 0, w, h)
	if turned >= 5 { // rows become columns
		size = image.Rect(0, 0, h, w)
	}
	var out draw.Image = image.NewNRGBA(size)
	if picture.ColorModel() == color.GrayModel {
		out = image.NewGray(size)
	}
	for y := range size.Dy() {
		for x := range size.Dx() {
			fx, fy := x, y
			switch turned {
			case 2:
				fx = w - 1 - x
			case 3:
				fx, fy = w-1-x, h-1-y
			case 4:
				fy = h - 1 - y
			case 5:
				fx, fy = y, x
			case 6:
				fx, fy = y, h-1-x
			case 7:
				fx, fy = w-1-y, h-1-x
			case 8:
				fx, fy = w-1-y, x
			}
			out.Set(x, y, picture.At(from.Min.X+fx, from.Min.Y+fy))
		}
	}
	return out
}

// profile returns the colour profile of a picture whose pixels are RGB; nil = it is taken as
// sRGB.
func profile(raw []byte, format string) []byte {
	var found []byte
	switch format {
	case "jpeg":
		found = profileOfJPEG(raw)
	case "png":
		found = profileOfPNG(raw)
	case "webp":
		found = profileOfWebP(raw)
	}
	// The header has the length, the colour space at 16 and a signature at 36.
	if len(found) < 128 || int(binary.BigEndian.Uint32(found)) != len(found) || string(found[36:40]) != "acsp" ||
		string(found[16:20]) != "RGB " {
		return nil
	}
	return found
}

// profileOfJPEG joins the parts of a profile. Other files have none: every part has its
// number and the number of all.
func profileOfJPEG(raw []byte) []byte {
	parts, total, size := map[byte][]byte{}, 0, 0
	for at := 2; at+4 <= len(raw) && raw[at] == 0xff; {
		marker := raw[at+1]
		if marker == 0xff { // fill
			at++
			continue
		}
		if marker == 0xda || marker == 0xd9 { // pixels follow, or nothing
			break
		}
		end := at + 2 + int(binary.BigEndian.Uint16(raw[at+2:]))
		if end > len(raw) || end < at+4 {
			return nil
		}
		if body, ok := bytes.CutPrefix(raw[at+4:end], jpegProfile); ok && marker == 0xe2 && len(body) > 2 {
			parts[body[0]], total = body[2:], int(body[1])
			size += len(body)
		}
		at = end
	}
	if len(parts) != total || size > maxProfile {
		return nil
	}
	var out []byte
	for n := 1; n <= total; n++ {
		out = append(out, parts[byte(n)]...)
	}
	return out
}

func profileOfPNG(raw []byte) []byte {
	for at := len(pngHeader); at+12 <= len(raw); {
		length := int(binary.BigEndian.Uint32(raw[at:]))
		if length > len(raw)-at-12 {
			return nil
		}
		kind, body := string(raw[at+4:at+8]), raw[at+8:at+8+length]
		switch kind {
		case "IDAT", "IEND":
			return nil
		case "iCCP":
			_, packed, _ := bytes.Cut(body, []byte{0}) // after the name and the method, which is always 0
			if len(packed) < 1 {
				return nil
			}
			unpacked, err := zlib.NewReader(bytes.NewReader(packed[1:]))
			if err != nil {
				return nil
			}
			return bounded(unpacked)
		}
		at += 12 + length
	}
	return nil
}

func profileOfWebP(raw []byte) []byte {
	_, chunks, err := riff.NewReader(bytes.NewReader(raw))
	for err == nil {
		var kind riff.FourCC
		var body io.Reader
		if kind, _, body, err = chunks.Next(); err == nil && kind == (riff.FourCC{'I', 'C', 'C', 'P'}) {
			return bounded(body)
		}
	}
	return nil
}

// bounded reads a profile; nil for one that is broken or too large.
func bounded(r io.Reader) []byte {
	read, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil || len(read) > maxProfile {
		return nil
	}
	return read
}

// withProfile returns an encoded picture with a colour profile.
func withProfile(body []byte, kind string, icc []byte) []byte {
	if len(icc) == 0 {
		return body
	}
	if kind == "png" {
		// of IHDR, after which the profile has to be
		end := len(pngHeader) + 12 + int(binary.BigEndian.Uint32(body[len(pngHeader):]))
		return bytes.Join([][]byte{body[:end], profileChunk(icc), body[end:]}, nil)
	}
	const most = 0xffff - 2 - 14 // a segment, less its length, the marker of the profile and two numbers
	out := bytes.Clone(body[:2])
	total := (len(icc) + most - 1) / most
	for n := 1; len(icc) > 0; n++ {
		part := icc[:min(len(icc), most)]
		icc = icc[len(part):]
		out = append(out, 0xff, 0xe2)
		out = binary.BigEndian.AppendUint16(out, uint16(2+len(jpegProfile)+2+len(part))) // at most 0xffff
		out = append(append(append(out, jpegProfile...), byte(n), byte(total)), part...) // a profile has a few segments
	}
	return append(out, body[2:]...)
}

// profileChunk returns a chunk of PNG with a colour profile.
func profileChunk(icc []byte) []byte {
	var packed bytes.Buffer
	packed.WriteString("iCCPicc\x00\x00")
	w := zlib.NewWriter(&packed)
	_, _ = w.Write(icc) // a buffer takes everything
	_ = w.Close()
	out := binary.BigEndian.AppendUint32(nil, uint32(packed.Len()-len("iCCP"))) // bounded
	out = append(out, packed.Bytes()...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(packed.Bytes()))
}

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
