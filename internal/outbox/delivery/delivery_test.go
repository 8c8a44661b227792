package delivery_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"seckill/internal/outbox/delivery"
)

func TestPausesTripleUpToTheLongest(t *testing.T) {
	t.Parallel()
	p := delivery.Pauses{First: 5 * time.Second, Most: time.Minute}
	var got []time.Duration
	for attempts := 1; attempts <= 5; attempts++ {
		got = append(got, p.After(attempts))
	}
	want := []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, time.Minute, time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

func TestAReasonIsValidAndShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"refused":                      "refused",
		"a\xffb":                       "a?b",
		strings.Repeat("x", 300):       strings.Repeat("x", 197) + "…",
		strings.Repeat("邮", 100):       strings.Repeat("邮", 65) + "…", // 198 bytes: the next one would be cut
		strings.Repeat("y", 200):       strings.Repeat("y", 200),
		"a" + strings.Repeat("é", 100): "a" + strings.Repeat("é", 98) + "…",
	} {
		if got := delivery.Reason(errors.New(text)); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
