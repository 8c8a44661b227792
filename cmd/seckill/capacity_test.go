package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The rows of the sizing table of docs/capacity.md.
func TestCapacityFollowsTheSizingTable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		in                 capacityCmd
		cores              int
		redis              float64
		needsAnInflowLimit bool
	}{
		{capacityCmd{Buyers: 5e3, Stock: 200, Window: 5 * time.Second}, 3, .03, false},
		{capacityCmd{Buyers: 1e5, Stock: 5e3, Window: 10 * time.Second}, 21, .31, false},
		{capacityCmd{Buyers: 1e6, Stock: 5e4, Window: time.Minute, Proof: true}, 10, .52, false},
		{capacityCmd{Buyers: 1e6, Stock: 5e4, Window: time.Second, Proof: true}, 574, 31, true},
	} {
		got := row.in.calculate()
		if got.APICores != row.cores || got.RedisLoad < row.redis*.95 || got.RedisLoad > row.redis*1.05 || got.Inflow > 0 != row.needsAnInflowLimit {
			t.Errorf("%+v: %+v", row.in, got)
		}
	}
}

func TestBuyersWaitOnlyWhereAResourceIsTooSmall(t *testing.T) {
	t.Parallel()
	in := capacityCmd{Buyers: 1e5, Stock: 5e3, Window: 10 * time.Second}
	if got := in.calculate(); got.LongestWait > 100*time.Millisecond || got.Served > in.Window+100*time.Millisecond {
		t.Errorf("with enough cores: %+v", got)
	}
	in.APICores = 4
	work := 124 * time.Second // 1e5 buyers at 1.244 ms each
	if got := in.calculate(); got.First != "API cores" || got.Served < work/4 || got.Served > work/4+time.Second || got.LongestWait < 20*time.Second {
		t.Errorf("with four cores: %+v", got)
	}
}

func TestCapacityIsPrintedWithoutServices(t *testing.T) {
	t.Parallel()
	got := command(t, nil, "capacity", "--buyers", "1e6", "--stock", "5e4", "--window", "1s")
	got.wants(t, exitOK)
	if !strings.Contains(got.stdout, "saturates first") || !strings.Contains(got.stdout, "inflow limit") {
		t.Errorf("printed\n%s", got.stdout)
	}
	got = command(t, nil, "capacity", "--json")
	got.wants(t, exitOK)
	var parsed capacity
	if err := json.Unmarshal([]byte(got.stdout), &parsed); err != nil || parsed.APICores != 21 {
		t.Errorf("%v: %s", err, got.stdout)
	}
	command(t, nil, "capacity", "--buyers", "0").wants(t, exitUnfit, "1 to 1e9 buyers")
}
