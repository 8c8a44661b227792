//go:build attack

package attack_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of one upload, seen from outside. Decoding 67 megapixels takes 268 MB and, on a
// quiet machine, more than a second.
const (
	uploadBytes = 100 << 20
	uploadTime  = 5 * time.Second
	bombBytes   = 50
)

// riff returns a chunk of a WebP file.
func riff(name string, body []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body)))
	return append(append(out, body...), make([]byte, len(body)%2)...)
}

// flat returns a lossless WebP of one colour, which has the same length at any size. The
// file is complete: a decoder reads all of its pixels.
func flat(width, height int, before ...byte) []byte {
	stream := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(width-1)|uint32(height-1)<<14)
	stream = append(stream, 0b10001000, 0b10001000, 0b0000_1000) // no transform, five codes of one symbol each
	file := append([]byte("WEBP"), before...)
	file = append(file, riff("VP8L", stream)...)
	if n := bombBytes - 8 - len(file); n > 0 && len(before) == 0 { // trailing bytes of the stream are never read
		file = append([]byte("WEBP"), riff("VP8L", append(stream, make([]byte, n)...))...)
	}
	return riff("RIFF", file)
}

// canvas returns the chunk that declares a size of 16 × 16 pixels.
func canvas() []byte {
	return riff("VP8X", []byte{0, 0, 0, 0, 15, 0, 0, 15, 0, 0})
}

// allocated returns the bytes that the server has allocated so far, freed or not.
func (s *target) allocated() (int64, error) {
	res, err := s.client.Get(s.admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "go_memstats_alloc_bytes_total "); ok {
			n, err := strconv.ParseFloat(text, 64)
			return int64(n), err
		}
	}
	return 0, fmt.Errorf("/metrics does not say what was allocated")
}

// upload sends a picture and returns the status, the answer and what it cost the server.
func (s *target) upload(token string, picture []byte) (status int, text string, cost int64, err error) {
	before, err := s.allocated()
	if err != nil {
		return 0, "", 0, err
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/media/", strings.NewReader(string(picture)))
	if err != nil {
		return 0, "", 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "image/webp")
	req.Header.Set("X-Forwarded-For", "93.189.1.1")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, "", 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	if err != nil {
		return 0, "", 0, err
	}
	after, err := s.allocated()
	return res.StatusCode, string(body), after - before, err
}

// bombs uploads a normal picture and small files that declare huge ones, and bounds what each
// upload costs the server.
func bombs(s *target) error {
	operator, err := s.staff("artist@example.com", "OPERATOR")
	if err != nil {
		return err
	}
	for _, picture := range []struct {
		name   string
		bytes  []byte
		status int
		rule   string
	}{
		{"600 × 400 pixels", flat(600, 400), http.StatusCreated, "url"},
		{"67 megapixels", flat(16383, 4096), http.StatusUnprocessableEntity, "pixels"},
		{"20 megapixels", flat(5000, 4000), http.StatusUnprocessableEntity, "pixels for each byte"},
		{"67 megapixels on a canvas of 16 × 16", flat(16383, 4096, canvas()...), http.StatusUnprocessableEntity, "picture"},
	} {
		began := time.Now()
		status, text, cost, err := s.upload(operator, picture.bytes)
		took := time.Since(began)
		if err != nil {
			return err
		}
		if status != picture.status || !strings.Contains(text, picture.rule) {
			return fmt.Errorf("%s in %d bytes: answered %d: %s", picture.name, len(picture.bytes), status, text)
		}
		if cost > uploadBytes || took > uploadTime {
			return fmt.Errorf("%s in %d bytes: the server took %d MB and %s", picture.name, len(picture.bytes), cost>>20, took)
		}
		s.t.Logf("%s in %d bytes: answered %d, %d kB, %s", picture.name, len(picture.bytes), status, cost>>10, took.Round(time.Millisecond/10))
	}
	return nil
}
