package doctor

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/platform/config"
)

func TestTheKeysOfIssuersAreRead(t *testing.T) {
	t.Parallel()
	keys := `{"keys":[{"kty":"EC","crv":"P-256","kid":"k1","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good":
			_, _ = w.Write([]byte(keys))
		case "/none":
			_, _ = w.Write([]byte(`{"keys":[]}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{"/good": "ok 1 keys", "/none": "error https://shop.example.com publishes no key", "/away": "error the keys of"} {
		file := filepath.Join(t.TempDir(), "issuers.json")
		text := `[{"issuer": "https://shop.example.com", "audience": "seckill", "jwks": "` + server.URL + path + `"}]`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		cfg.Profile, cfg.TokenIssuers = config.ProfileDevelopment, file
		var r report
		r.issuers(t.Context(), Deps{Config: cfg})
		if len(r.findings) != 1 || !strings.HasPrefix(string(r.findings[0].Level)+" "+r.findings[0].Message, want) {
			t.Errorf("%s: %+v, want %s", path, r.findings, want)
		}
	}
}
