package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"seckill/internal/app/server"
	"seckill/internal/platform/clock"
)

func TestTheAdminListenerAnswersNoPageOfTheInternet(t *testing.T) {
	t.Parallel()
	admin := server.NewAdmin(server.NewReadiness(clock.System{}), nil, nil)
	for host, want := range map[string]int{
		"127.0.0.1:9090": http.StatusOK, "[::1]:9090": http.StatusOK, "10.1.2.3:9090": http.StatusOK, "localhost:9090": http.StatusOK,
		"seckill:9090": http.StatusOK, "seckill.shop.svc.cluster.local": http.StatusOK, "api-1.internal.": http.StatusOK,
		"rebound.example:9090": http.StatusMisdirectedRequest, "127.0.0.1.evil.example": http.StatusMisdirectedRequest,
		"local.example.": http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.Host = host
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}
