package media_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/media"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bucket is the part of S3 that a store needs: objects by path, over HTTP.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	types   map[string]string
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		if decoded := r.Header.Get("X-Amz-Decoded-Content-Length"); decoded != "" {
			body = unchunked(body)
		}
		b.objects[r.URL.Path], b.types[r.URL.Path] = body, r.Header.Get("Content-Type")
		w.Header().Set("ETag", `"x"`)
	default:
		body, ok := b.objects[r.URL.Path]
		if !ok {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
			return
		}
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 12:00:00 GMT")
		w.Header().Set("ETag", `"x"`)
		_, _ = w.Write(body)
	}
}

// unchunked decodes the aws-chunked encoding: size;signature, bytes, and so on.
func unchunked(body []byte) (out []byte) {
	for len(body) > 0 {
		head, rest, _ := bytes.Cut(body, []byte("\r\n"))
		size := 0
		for _, c := range strings.ToLower(strings.SplitN(string(head), ";", 2)[0]) {
			size = size*16 + strings.IndexRune("0123456789abcdef", c)
		}
		if size == 0 {
			return out
		}
		out = append(out, rest[:size]...)
		body = rest[size+2:]
	}
	return out
}

// onEach runs a test on a folder, on a bucket and in memory.
func onEach(t *testing.T, test func(t *testing.T, store media.Store)) {
	t.Helper()
	t.Run("disk", func(t *testing.T) {
		t.Parallel()
		store, done, err := media.Open("file://" + t.TempDir() + "/pictures")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = done() })
		test(t, store)
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store, _, err := media.Open(media.InMemory)
		if err != nil {
			t.Fatal(err)
		}
		test(t, store)
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(&bucket{objects: map[string][]byte{}, types: map[string]string{}})
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		store, _, err := media.Open("s3://key:secret@" + host + "/shop/goods?region=eu-1&insecure=true")
		if err != nil {
			t.Fatal(err)
		}
		test(t, store)
	})
}

// picture returns a noisy picture of a given size; a transparent one has a hole.
func picture(w, h int, hole bool) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	random := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	for i := range img.Pix {
		img.Pix[i] = byte(random.IntN(256))
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	if hole {
		img.SetNRGBA(0, 0, color.NRGBA{})
	}
	return img
}

func encoded(t *testing.T, encode func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := encode(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asPNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	return encoded(t, func(w io.Writer) error { return png.Encode(w, img) })
}

func TestAPictureIsKeptCleanAndOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, store media.Store) {
		s := media.New(store)
		raw := append(asPNG(t, picture(60, 40, true)), []byte("<script>alert(1)</script>")...)
		var addresses []string
		for range 2 {
			address, err := s.Save(t.Context(), bytes.NewReader(raw))
			if err != nil || !strings.HasPrefix(address, media.Path) || !strings.HasSuffix(address, ".png") {
				t.Fatalf("%q %v", address, err)
			}
			addresses = append(addresses, address)
		}
		if addresses[0] != addresses[1] {
			t.Errorf("two names for one picture: %q", addresses)
		}
		body, err := store.Get(t.Context(), strings.TrimPrefix(addresses[0], media.Path))
		if err != nil || bytes.Contains(body, []byte("script")) {
			t.Fatalf("kept as it was: %v", err)
		}
		back, err := png.Decode(bytes.NewReader(body))
		if err != nil || back.Bounds().Dx() != 60 {
			t.Error(err)
		}
		if _, err := store.Get(t.Context(), strings.Repeat("0", 40)+".png"); !errors.Is(err, media.ErrNotFound) {
			t.Errorf("a picture that is not there: %v", err)
		}
	})
}

func TestKindsAndSizes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, store media.Store) {
		s := media.New(store)
		big := picture(1700, 400, false)
		for name, c := range map[string]struct {
			raw  []byte
			end  string
			wide int
		}{
			"jpeg":        {encoded(t, func(w io.Writer) error { return jpeg.Encode(w, big, nil) }), ".jpg", 1600},
			"opaque png":  {asPNG(t, picture(20, 10, false)), ".jpg", 20},
			"gif":         {encoded(t, func(w io.Writer) error { return gif.Encode(w, picture(30, 10, false), nil) }), ".jpg", 30},
			"large png":   {asPNG(t, picture(1700, 17, true)), ".png", 1600},
			"narrow line": {asPNG(t, picture(1601, 1, false)), ".jpg", 1600},
		} {
			address, err := s.Save(t.Context(), bytes.NewReader(c.raw))
			if err != nil || !strings.HasSuffix(address, c.end) {
				t.Errorf("%s: %q %v", name, address, err)
				continue
			}
			body, err := store.Get(t.Context(), strings.TrimPrefix(address, media.Path))
			if err != nil {
				t.Fatal(err)
			}
			if head, _, err := image.DecodeConfig(bytes.NewReader(body)); err != nil || head.Width != c.wide {
				t.Errorf("%s: %+v %v", name, head, err)
			}
		}
	})
}

// mist returns a PNG of noise in grey and alpha, two bytes per pixel; decoded and
// encoded again it has four.
func mist(w, h int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	var body bytes.Buffer
	z := zlib.NewWriter(&body)
	row := make([]byte, 1+2*w)
	for range h {
		_, _ = random.Read(row[1:])
		_, _ = z.Write(row)
	}
	_ = z.Close()
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	out := []byte("\x89PNG\r\n\x1a\n")
	for _, c := range []struct {
		kind string
		data []byte
	}{{"IHDR", append(head, 8, 4, 0, 0, 0)}, {"IDAT", body.Bytes()}, {"IEND", nil}} {
		chunk := append([]byte(c.kind), c.data...)
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(c.data))), chunk...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
	}
	return out
}

func TestAPictureThatGrowsBeyondTheBoundIsMadeSmallerAndServedWhole(t *testing.T) {
	t.Parallel()
	store, done, err := media.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	raw := mist(1600, 1450)
	address, err := media.New(store).Save(t.Context(), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	body, err := store.Get(t.Context(), strings.TrimPrefix(address, media.Path))
	if err != nil {
		t.Fatal(err)
	}
	if back, err := png.Decode(bytes.NewReader(body)); err != nil || back.Bounds().Dx() != 800 {
		t.Errorf("of %d bytes %d were served: %v", len(raw), len(body), err)
	}
}

// bomb returns the header of a PNG that declares a huge size.
func bomb(t *testing.T) []byte {
	raw := asPNG(t, picture(1, 1, false))
	copy(raw[16:24], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65,536 × 65,536
	return raw
}

func TestWhatIsNoPictureIsRefused(t *testing.T) {
	t.Parallel()
	store, done, err := media.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	s := media.New(store)
	whole := asPNG(t, picture(50, 50, false))
	for name, raw := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "html": []byte("<html><script>"), "svg": []byte("<svg onload='x'/>"),
		"half": whole[:len(whole)/2], "huge": bomb(t), "long": make([]byte, media.MaxBytes+1),
	} {
		address, err := s.Save(t.Context(), bytes.NewReader(raw))
		if fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%s: %q %v", name, address, err)
		}
	}
}

func TestPicturesAreUploadedByStaffAndServedToAll(t *testing.T) {
	t.Parallel()
	store, done, err := media.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	authorise := func(r *http.Request) error {
		switch r.Header.Get("Authorization") {
		case "Bearer operator":
			return nil
		case "":
			return fault.New(fault.Unauthenticated, "Sign in first.")
		}
		return fault.New(fault.Forbidden, "No.")
	}
	server := httptest.NewServer(media.New(store).Handler(authorise, slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(client.CloseIdleConnections)
	ask := func(method, path, token, kind string, body []byte) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Content-Type", kind)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	raw := asPNG(t, picture(40, 40, true))
	for want, c := range map[int][3]string{
		401: {"", "image/png"}, 403: {"buyer", "image/png"}, 415: {"operator", "multipart/form-data"}, 422: {"operator", "image/png", "spoil"},
	} {
		body := raw
		if c[2] != "" {
			body = []byte("no picture")
		}
		if got := ask("POST", "/media/", c[0], c[1], body).StatusCode; got != want {
			t.Errorf("%v: %d, want %d", c, got, want)
		}
	}
	made := ask("POST", "/media/", "operator", "image/png", raw)
	var address struct{ URL string }
	if err := json.NewDecoder(made.Body).Decode(&address); err != nil || made.StatusCode != http.StatusCreated || made.Header.Get("Location") != address.URL {
		t.Fatalf("%d %+v %v", made.StatusCode, address, err)
	}
	served := ask("GET", address.URL, "", "", nil)
	body, _ := io.ReadAll(served.Body)
	if _, err := png.Decode(bytes.NewReader(body)); err != nil || served.Header.Get("Content-Type") != "image/png" ||
		served.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(served.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("%v %v", served.Header, err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+address.URL, nil)
	r.Header.Set("If-None-Match", served.Header.Get("ETag"))
	if again, err := client.Do(r); err != nil || again.StatusCode != http.StatusNotModified {
		t.Errorf("%v %v", again, err)
	} else {
		_ = again.Body.Close()
	}
	for _, path := range []string{"/media/../../etc/passwd", "/media/..%2f..%2fetc%2fpasswd", "/media/x.png", "/media/" + strings.Repeat("a", 40) + ".svg", "/media/" + strings.Repeat("a", 40) + ".png"} {
		gone := ask("GET", path, "", "", nil)
		if gone.StatusCode != http.StatusNotFound || strings.Contains(gone.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", path, gone.StatusCode, gone.Header)
		}
	}
}

func TestManyUploadsOfOnePictureAtOnceLeaveOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, done, err := media.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	s := media.New(store)
	raw := asPNG(t, picture(40, 40, true))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.Save(context.Background(), bytes.NewReader(raw)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, error %v", len(files), err)
	}
}

func TestAddressesOfStores(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"s3://", "s3://host", "s3://host/", "s3:///bucket"} {
		if _, _, err := media.Open(address); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
}
