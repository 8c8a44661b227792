package media_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"seckill/internal/platform/media"
)

// exif returns the metadata of a photograph with an orientation, in one byte order.
func exif(orientation uint16, order binary.AppendByteOrder) []byte {
	head := map[binary.AppendByteOrder]string{binary.LittleEndian: "II", binary.BigEndian: "MM"}[order]
	out := order.AppendUint16([]byte(head), 42)
	out = order.AppendUint32(out, 8)
	out = order.AppendUint16(out, 2) // entries
	for _, tag := range [][2]uint16{{0x0112, orientation}, {0x0128, 2}} {
		out = order.AppendUint16(out, tag[0])
		out = order.AppendUint16(out, 3) // SHORT
		out = order.AppendUint32(out, 1)
		out = order.AppendUint16(out, tag[1])
		out = order.AppendUint16(out, 0)
	}
	return order.AppendUint32(out, 0)
}

// iccProfile returns a profile that is complete by its header.
func iccProfile(space string, size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i * 7)
	}
	binary.BigEndian.PutUint32(out, uint32(size))
	copy(out[16:], space)
	copy(out[36:], "acsp")
	return out
}

func segment(marker byte, parts ...string) []byte {
	body := []byte{}
	for _, part := range parts {
		body = append(body, part...)
	}
	return append(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(2+len(body))), body...)
}

func pngChunk(kind string, body []byte) []byte {
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), append([]byte(kind), body...)...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// jpegWith, pngWith and webpWith return a picture with metadata before its pixels.
func jpegWith(t *testing.T, picture image.Image, meta, icc []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	raw := append([]byte{0xff, 0xd8}, segment(0xe1, "Exif\x00\x00", string(meta))...)
	for n, half := 1, len(icc)/2; n <= 2 && len(icc) > 0; n++ {
		part := icc[:half]
		if n == 2 {
			part = icc[half:]
		}
		raw = append(raw, segment(0xe2, "ICC_PROFILE\x00", string([]byte{byte(n), 2}), string(part))...)
	}
	return append(raw, out.Bytes()[2:]...)
}

func pngWith(t *testing.T, picture image.Image, meta, icc []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	raw := bytes.Clone(out.Bytes()[:33]) // signature and IHDR
	if icc != nil {
		packed := bytes.NewBufferString("Display P3\x00\x00")
		w := zlib.NewWriter(packed)
		_, _ = w.Write(icc)
		_ = w.Close()
		raw = append(raw, pngChunk("iCCP", packed.Bytes())...)
	}
	raw = append(raw, pngChunk("eXIf", meta)...)
	return append(raw, out.Bytes()[33:]...)
}

func webpWith(width, height int, meta, icc []byte) []byte {
	header := make([]byte, 10)
	header[0] = 1<<5 | 1<<3
	header[4], header[5], header[7], header[8] = byte(width-1), byte((width-1)>>8), byte(height-1), byte((height-1)>>8)
	body := bytes.Join([][]byte{[]byte("WEBP"), chunk("VP8X", header), chunk("ICCP", icc), chunk("VP8L", flatVP8L(width, height)), chunk("EXIF", meta)}, nil)
	return chunk("RIFF", body)
}

// saved returns a picture as it is served.
func saved(t *testing.T, raw []byte) ([]byte, image.Image) {
	t.Helper()
	store, _, err := media.Open(media.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	address, err := media.New(store).Save(t.Context(), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	body, err := store.Get(t.Context(), address[len(media.Path):])
	if err != nil {
		t.Fatal(err)
	}
	picture, _, err := image.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return body, picture
}

func TestAPhotographIsShownAsItWasTaken(t *testing.T) {
	t.Parallel()
	// Where the red corner, at the top left of the pixels, is shown.
	corners := map[uint16]string{1: "top left", 2: "top right", 3: "bottom right", 4: "bottom left", 5: "top left", 6: "top right", 7: "bottom right", 8: "bottom left"}
	const w, h = 64, 32
	for _, grey := range []bool{false, true} {
		for turned, corner := range corners {
			var pixels interface {
				image.Image
				Set(x, y int, c color.Color)
			} = image.NewNRGBA(image.Rect(0, 0, w, h))
			if grey {
				pixels = image.NewGray(image.Rect(0, 0, w, h))
			}
			for y := range h {
				for x := range w {
					if x < 16 && y < 16 {
						pixels.Set(x, y, color.NRGBA{R: 255, A: 255})
					} else {
						pixels.Set(x, y, color.NRGBA{R: 255, G: 255, B: 255, A: 255})
					}
				}
			}
			for name, raw := range map[string][]byte{
				"JPEG": jpegWith(t, pixels, exif(turned, binary.LittleEndian), nil), "PNG": pngWith(t, pixels, exif(turned, binary.BigEndian), nil),
			} {
				_, picture := saved(t, raw)
				want := image.Pt(w, h)
				if turned >= 5 {
					want = image.Pt(h, w)
				}
				if got := picture.Bounds().Size(); got != want {
					t.Errorf("%s turned %d: %s, want %s", name, turned, got, want)
					continue
				}
				for where, at := range map[string]image.Point{
					"top left": {4, 4}, "top right": {want.X - 5, 4}, "bottom left": {4, want.Y - 5}, "bottom right": {want.X - 5, want.Y - 5},
				} {
					_, g, _, _ := picture.At(at.X, at.Y).RGBA()
					if dark := g < 0x8000; dark != (where == corner) {
						t.Errorf("%s turned %d (grey: %t): %s is dark: %t", name, turned, grey, where, dark)
					}
				}
			}
		}
	}
	if _, picture := saved(t, webpWith(60, 40, exif(6, binary.LittleEndian), iccProfile("RGB ", 600))); picture.Bounds().Size() != image.Pt(40, 60) {
		t.Errorf("WebP: %s", picture.Bounds())
	}
	if _, picture := saved(t, pngWith(t, picture(64, 32, false), []byte("II*\x00broken"), nil)); picture.Bounds().Size() != image.Pt(64, 32) {
		t.Errorf("broken metadata: %s", picture.Bounds())
	}
}

func TestAColourProfileStaysWithItsPicture(t *testing.T) {
	t.Parallel()
	meta := exif(1, binary.LittleEndian)
	for _, size := range []int{600, 150_000} { // the second needs three segments of JPEG
		icc := iccProfile("RGB ", size)
		for name, raw := range map[string][]byte{
			"JPEG": jpegWith(t, picture(64, 32, false), meta, icc[:min(size, 600)]), "WebP": webpWith(60, 40, meta, icc),
			"PNG": pngWith(t, picture(64, 32, false), meta, icc), "PNG with a hole": pngWith(t, picture(64, 32, true), meta, icc),
		} {
			if name == "JPEG" && size > 600 {
				continue
			}
			body, _ := saved(t, raw)
			if again, _ := saved(t, body); !bytes.Contains(joined(body), icc) || !bytes.Contains(joined(again), icc) {
				t.Errorf("%s: the profile of %d bytes is lost", name, size)
			}
			if bytes.Contains(body, []byte("Exif")) || bytes.Contains(body, []byte("eXIf")) {
				t.Errorf("%s: metadata stays", name)
			}
		}
	}
	grey := image.NewGray(image.Rect(0, 0, 64, 32))
	for name, raw := range map[string][]byte{
		"of a printer": jpegWith(t, picture(64, 32, false), meta, iccProfile("CMYK", 600)), "cut": pngWith(t, picture(64, 32, false), meta, iccProfile("RGB ", 600)[:500]),
		"of grey": jpegWith(t, grey, meta, iccProfile("GRAY", 600)), "of colours for grey": pngWith(t, grey, meta, iccProfile("RGB ", 600)),
	} {
		if body, _ := saved(t, raw); bytes.Contains(body, []byte("acsp")) || bytes.Contains(body, []byte("ICC_PROFILE")) || bytes.Contains(body, []byte("iCCP")) {
			t.Errorf("a profile %s stays", name)
		}
	}
}

// joined returns what a file says in one piece: the parts of a profile without the segments
// around them, and a packed profile unpacked.
func joined(body []byte) []byte {
	if at := bytes.Index(body, []byte("iCCP")); at >= 0 {
		_, packed, _ := bytes.Cut(body[at:], []byte{0})
		var out bytes.Buffer
		if r, err := zlib.NewReader(bytes.NewReader(packed[1:])); err == nil {
			_, _ = out.ReadFrom(r)
		}
		return out.Bytes()
	}
	var out []byte
	for at := 2; at+18 < len(body) && body[at] == 0xff && body[at+1] == 0xe2; {
		end := at + 2 + int(binary.BigEndian.Uint16(body[at+2:]))
		out = append(out, body[at+18:end]...)
		at = end
	}
	return out
}
