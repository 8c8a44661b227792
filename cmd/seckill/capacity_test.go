package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// capacityOf runs the command with flags and returns its result.
func capacityOf(t *testing.T, flags string) (c capacity) {
	t.Helper()
	got := command(t, nil, strings.Fields("capacity --json "+flags)...)
	got.wants(t, exitOK)
	if err := json.Unmarshal([]byte(got.stdout), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// The rows of the sizing table of docs/capacity.md.
func TestCapacityFollowsTheSizingTable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		flags              string
		cores              float64
		redis              float64
		needsAnInflowLimit bool
	}{
		{"--buyers 5e3 --stock 200 --window 5s", 3, .035, false},
		{"--buyers 1e5 --stock 5e3 --window 10s", 28, .356, false},
		{"--buyers 1e6 --stock 5e4 --window 1m --proof", 14, .593, false},
		{"--buyers 1e6 --stock 5e4 --window 1s --proof", 781, 35.6, true},
	} {
		got := capacityOf(t, row.flags)
		if got.APICores != row.cores || got.RedisLoad < row.redis*.95 || got.RedisLoad > row.redis*1.05 || got.Inflow > 0 != row.needsAnInflowLimit {
			t.Errorf("%s: %+v", row.flags, got)
		}
	}
}

func TestBuyersWaitOnlyWhereAResourceIsTooSmall(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	if got := capacityOf(t, "--buyers 1e5 --stock 5e3 --window 10s"); got.LongestWait > 100*time.Millisecond || got.Served > window+100*time.Millisecond {
		t.Errorf("with enough cores: %+v", got)
	}
	work := 164 * time.Second // 1e5 buyers at 1.638 ms each
	if got := capacityOf(t, "--buyers 1e5 --stock 5e3 --window 10s --api-cores 4"); got.First != "API cores" || got.Served < work/4-100*time.Millisecond || got.Served > work/4+time.Second || got.LongestWait < 20*time.Second {
		t.Errorf("with four cores: %+v", got)
	}
	// Two thousand buyers with path tokens at 0.1 ms of half a core.
	if got := capacityOf(t, "--buyers 2000 --stock 1000 --window 100ms --paths --api-cores 0.5 --cost-order 120 --cost-sold-out 80"); got.Served != 400*time.Millisecond {
		t.Errorf("with path tokens and costs of one's own: %+v", got)
	}
}

func TestCapacityIsPrintedWithoutServices(t *testing.T) {
	t.Parallel()
	got := command(t, nil, "capacity", "--buyers", "1e6", "--stock", "5e4", "--window", "1s")
	got.wants(t, exitOK)
	if !strings.Contains(got.stdout, "saturates first") || !strings.Contains(got.stdout, "inflow limit") {
		t.Errorf("printed\n%s", got.stdout)
	}
	command(t, nil, "capacity", "--buyers", "0").wants(t, exitUnfit, "1 to 1e9 buyers")
}

// The page and the command have the same costs.
func TestThePageOfCapacityHasTheCostsOfTheCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(top + "/docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[a-z]([A-Z])`)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[costs]()) {
		flag := strings.ToLower(names.ReplaceAllStringFunc(field.Name, func(s string) string { return s[:1] + "-" + s[1:] }))
		if row := fmt.Sprintf("| `--cost-%s` | %s µs |", flag, field.Tag.Get("default")); !strings.Contains(string(page), row) {
			t.Errorf("docs/capacity.md has no row %q", row)
		}
	}
}
