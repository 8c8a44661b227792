package system_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"seckill/internal/platform/config"
)

func TestATrialSaysOnEveryPageThatNoMoneyMoves(t *testing.T) {
	t.Parallel()
	for sandbox, want := range map[config.Sandbox]bool{config.SandboxTrial: true, config.SandboxOff: false} {
		s := newSite(t, production(), func(c *config.Config) { c.Sandbox = sandbox })
		s.start("api")
		for _, page := range []string{"/", "/s/phone", "/orders/1", "/operate"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+page, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if shown := strings.Contains(string(text), "no money moves"); err != nil || shown != want {
				t.Errorf("%s with %s: the banner is there: %t, %v", page, sandbox, shown, err)
			}
		}
	}
}
