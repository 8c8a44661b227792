package doctor

import (
	"testing"

	"seckill/internal/platform/redisconn"
)

func TestVersionsWithTheHoleInLuaAreKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		redis, valkey string
		hole          bool
		fix           string
	}{
		{"6.2.19", "", true, "Redis 6.2.20"}, {"6.2.20", "", false, ""}, {"7.0.15", "", true, "Redis 8.2.2"},
		{"7.2.10", "", true, "Redis 7.2.11"}, {"7.2.11", "", false, ""}, {"7.4.5", "", true, "Redis 7.4.6"}, {"7.4.10", "", false, ""},
		{"8.0.3", "", true, "Redis 8.0.4"}, {"8.0.4", "", false, ""}, {"8.2.1", "", true, "Redis 8.2.2"}, {"8.2.2", "", false, ""}, {"8.4.0", "", false, ""}, {"10.0.0", "", false, ""},
		{"7.2.4", "7.2.10", true, "Valkey 7.2.11"}, {"7.2.4", "7.2.11", false, ""}, {"7.2.4", "8.0.5", true, "Valkey 8.0.6"}, {"7.2.4", "8.1.3", true, "Valkey 8.1.4"},
		{"7.2.4", "8.1.4", false, ""}, {"7.2.4", "9.0.0", false, ""}, {"", "", false, ""}, {"unstable", "", false, ""},
	} {
		fix, hole := luaHoleOf(redisconn.Server{Version: c.redis, Valkey: c.valkey})
		if hole != c.hole || hole && fix != c.fix {
			t.Errorf("Redis %q, Valkey %q: hole %t, fixed by %q; want %t, %q", c.redis, c.valkey, hole, fix, c.hole, c.fix)
		}
	}
}

func TestVersionsAreReportedWithWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct {
		level Level
		n     int
	}{
		"6.0.16": {Error, 1}, "6.2.21": {Warning, 1}, "6.2.14": {Warning, 2}, "7.0.15": {OK, 1}, "7.0.11": {Warning, 1}, "7.2.11": {OK, 1}, "8.2.1": {Warning, 1},
	} {
		var r report
		r.redisServer(redisconn.Server{Addr: "a", Version: version, Policy: noEviction})
		n := 0
		for _, f := range r.findings {
			if f.Level == want.level && f.Message != "a never evicts" {
				n++
			}
		}
		if n != want.n {
			t.Errorf("%s: %d of level %s, want %d: %+v", version, n, want.level, want.n, r.findings)
		}
	}
}

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
