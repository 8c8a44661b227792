package transport

import (
	"net/http"
	"strings"
	"testing"
)

func TestASocketSpeaksTheLanguageOfItsPayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		upgrade string
		payload any
		want    string
	}{
		"of the payload":           {"en", map[string]any{"accept-language": "zh-CN"}, "zh-CN"},
		"without one in the head":  {"", map[string]any{"Accept-Language": "zh-CN"}, "zh-CN"},
		"of the upgrade otherwise": {"en", map[string]any{"authorization": "Bearer x"}, "en"},
		"no payload":               {"en", nil, "en"},
		"no text":                  {"en", map[string]any{"accept-language": 7}, "en"},
		"too long":                 {"en", map[string]any{"accept-language": strings.Repeat("z", maxLanguage+1)}, "en"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &socket{}
			if c.upgrade != "" {
				s.headers = http.Header{"Accept-Language": {c.upgrade}}
			}
			s.speak(message{payload: c.payload})
			if got := s.headers.Get("Accept-Language"); got != c.want {
				t.Errorf("speaks %q, want %q", got, c.want)
			}
		})
	}
}
