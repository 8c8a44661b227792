package fault_test

import (
	"testing"

	"seckill/internal/platform/fault"
)

func TestALineHasBoundsAndNoControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "minLength: 1", "a": "", "好好好": "", "好好好好": "maxLength: 3", "a\n": "no control characters",
	} {
		if got := fault.Line(text, 1, 3).String(); got != want {
			t.Errorf("%q breaks %q, want %q", text, got, want)
		}
	}
	if rule := fault.Line("", 0, 3); rule != (fault.Rule{}) {
		t.Errorf("an optional line breaks %s", rule)
	}
}
