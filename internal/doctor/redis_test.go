package doctor

import "testing"

func TestVersionsOfRedisAreComparedByNumber(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct{ older, known bool }{
		"7.0.15": {false, true}, "6.2.0": {false, true}, "10.0.1": {false, true},
		"6.0.16": {true, true}, "5.0.14": {true, true}, "": {false, false}, "unstable": {false, false}, "a.b": {false, false},
	} {
		if older, known := olderThan(version, minRedis); older != want.older || known != want.known {
			t.Errorf("%q: older %t, known %t", version, older, known)
		}
	}
}
