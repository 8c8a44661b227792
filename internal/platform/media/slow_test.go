package media_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/platform/media"
	"seckill/internal/testenv"
)

func TestPicturesMayComeSlowly(t *testing.T) {
	t.Parallel()
	store, done, err := media.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	raw := asPNG(t, picture(40, 40, true))
	synctest.Test(t, func(t *testing.T) {
		allow := func(*http.Request) error { return nil }
		server := &http.Server{
			Handler:     media.New(store).Handler(allow, slog.New(slog.DiscardHandler)),
			ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		}
		l := testenv.NewPipes()
		go func() { _ = server.Serve(l) }()
		conn := l.Dial()
		sent, body := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop/media/", sent)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "image/png")
		go func() { _ = r.Write(conn) }()
		go func() {
			_, _ = io.Copy(body, bytes.NewReader(raw[:100]))
			<-time.After(time.Minute) // of the bubble's clock
			_, _ = io.Copy(body, bytes.NewReader(raw[100:]))
			_ = body.Close()
		}()
		answer, err := http.ReadResponse(bufio.NewReader(conn), r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			t.Errorf("%d", answer.StatusCode)
		}
		_ = conn.Close()
		_ = server.Close()
	})
}
