package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"seckill/internal/app/server"
	"seckill/internal/platform/clock"
)

func TestReadinessSurvivesAShortFailureOfAService(t *testing.T) {
	t.Parallel()
	const (
		good      = `{"checks":[{"name":"redis","ok":true}],"ready":true}` + "\n"
		tolerated = `{"checks":[{"name":"redis","ok":false,"reason":"no route","tolerated":true}],"ready":true}` + "\n"
		away      = `{"checks":[{"name":"redis","ok":false,"reason":"no route"}],"ready":false}` + "\n"
	)
	now := clock.NewFake(time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC))
	var redis error
	ready := server.NewReadiness(now, server.Check{Name: "redis", Run: func(context.Context) error { return redis }})
	wants := func(when string, code int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		ready.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != code || w.Body.String() != body {
			t.Errorf("%s: %d %s, want %d %s", when, w.Code, w.Body, code, body)
		}
	}
	redis = errors.New("no route")
	wants("never there", http.StatusServiceUnavailable, away)
	redis = nil
	wants("there", http.StatusOK, good)
	redis = errors.New("no route")
	now.Advance(15 * time.Second)
	wants("away for 15 s", http.StatusOK, tolerated)
	now.Advance(time.Second)
	wants("away for 16 s", http.StatusServiceUnavailable, away)
	redis = nil
	wants("back", http.StatusOK, good)
	redis = errors.New("no route")
	now.Advance(10 * time.Second)
	wants("away again", http.StatusOK, tolerated)
}
