package media_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"seckill/internal/media"
)

// slow is a body whose second half is delayed.
type slow struct {
	halves []io.Reader
	after  time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.halves[0].Read(p)
	if err == io.EOF && len(s.halves) > 1 {
		s.halves = s.halves[1:]
		<-time.After(s.after)
		return 0, nil
	}
	return n, err
}

func TestPicturesMayComeSlowly(t *testing.T) {
	t.Parallel()
	store, done, err := media.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	allow := func(*http.Request) error { return nil }
	server := httptest.NewUnstartedServer(media.New(store).Handler(allow, slog.New(slog.DiscardHandler)))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 3*time.Second, 3*time.Second
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	raw := asPNG(t, picture(40, 40, true))
	body := &slow{halves: []io.Reader{bytes.NewReader(raw[:100]), bytes.NewReader(raw[100:])}, after: 4 * time.Second}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/media/", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "image/png")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("%d", answer.StatusCode)
	}
}
