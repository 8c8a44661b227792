package media_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/media"
)

// flatVP8L returns a lossless bit stream of one colour: 8 bytes for any size.
func flatVP8L(width, height int) []byte {
	out := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(width-1)|uint32(height-1)<<14)
	return append(out, 0b10001000, 0b10001000, 0b0000_1000) // no transform, five prefix codes of one symbol
}

// chunk returns one chunk of a RIFF file.
func chunk(name string, body []byte) []byte {
	out := append([]byte(name), binary.LittleEndian.AppendUint32(nil, uint32(len(body)))...)
	out = append(out, body...)
	if len(body)%2 == 1 {
		out = append(out, 0)
	}
	return out
}

// extendedWebP returns a file that declares a canvas of another size than its bit
// stream.
func extendedWebP(canvasWidth, canvasHeight int, stream []byte) []byte {
	header := make([]byte, 10)
	header[4], header[5], header[6] = byte(canvasWidth-1), byte((canvasWidth-1)>>8), byte((canvasWidth-1)>>16)
	header[7], header[8], header[9] = byte(canvasHeight-1), byte((canvasHeight-1)>>8), byte((canvasHeight-1)>>16)
	return chunk("RIFF", append([]byte("WEBP"), append(chunk("VP8X", header), chunk("VP8L", stream)...)...))
}

func TestAWebPCannotDecodeToMoreThanItDeclares(t *testing.T) { // not parallel: it measures allocations
	store, done, err := media.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	s := media.New(store)
	for name, c := range map[string]struct {
		raw     []byte
		refused bool
	}{
		"small canvas, 67 megapixels": {extendedWebP(16, 16, flatVP8L(8192, 8192)), true},
		"small canvas, 1 megapixel":   {extendedWebP(16, 16, flatVP8L(1000, 1000)), true},
		"67 megapixels":               {chunk("RIFF", append([]byte("WEBP"), chunk("VP8L", flatVP8L(8192, 8192))...)), true},
		"20 megapixels of 40 bytes":   {chunk("RIFF", append([]byte("WEBP"), chunk("VP8L", flatVP8L(5000, 4000))...)), true},
		"as declared":                 {extendedWebP(600, 400, flatVP8L(600, 400)), false},
		"plain":                       {chunk("RIFF", append([]byte("WEBP"), chunk("VP8L", flatVP8L(600, 400))...)), false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		address, err := s.Save(t.Context(), bytes.NewReader(c.raw))
		runtime.ReadMemStats(&after)
		if _, refused := errors.AsType[fault.BadField](err); c.refused != refused || c.refused == (address != "") {
			t.Errorf("%s (%d bytes): %q, %v", name, len(c.raw), address, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
			t.Errorf("%s (%d bytes) allocates %d bytes", name, len(c.raw), n)
		}
	}
}
