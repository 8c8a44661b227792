package archtest

import (
	"fmt"
	"slices"
	"testing"
)

// layer is a set of rooms that do not import each other. A room is a package with all
// packages below it.
type layer struct {
	name  string
	rooms []string
}

// layers lists the layers from the lowest up. A room may import itself and rooms of lower
// layers.
var layers = []layer{
	{"values", []string{"internal/accent", "internal/id", "internal/typed"}},
	{"leaf", []string{"docs", "ent", "migrations", "web", "internal/clock", "internal/config", "internal/fault", "internal/locale", "internal/money", "internal/spreadsheet", "internal/tracing"}},
	{"services", []string{"internal/postgres", "internal/redisconn", "internal/periodic", "internal/batch", "internal/cursor", "internal/delivery", "internal/telemetry"}},
	{"platform", []string{"internal/auth", "internal/ratelimit", "internal/stream", "internal/media"}},
	{"services of tests", []string{"internal/testenv"}},
	{"facts for others", []string{"internal/deadletter", "internal/webhook", "internal/servicetoken", "internal/recipient", "internal/mail", "internal/testdb"}},
	{"notices", []string{"internal/notice"}},
	{"nouns", []string{"internal/sale", "internal/reservation", "internal/order", "internal/notifier"}},
	{"after the order", []string{"internal/payment", "internal/receipt", "internal/acceptance", "internal/waitlist"}},
	{"gate", []string{"internal/admission"}},
	{"people", []string{"internal/account"}},
	{"refusals", []string{"internal/attempt"}},
	{"figures", []string{"internal/salestats", "internal/audit"}},
	{"use cases", []string{
		"internal/checkout", "internal/storefront", "internal/operator", "internal/oidc",
		"internal/orderintake", "internal/preload", "internal/reconcile", "internal/seed", "internal/report",
	}},
	{"losses of Postgres", []string{"internal/recordloss"}},
	{"what waits", []string{"internal/inbox"}},
	{"API", []string{"graph"}},
	{"door", []string{"internal/server", "internal/doctor", "internal/drill"}},
	{"wiring", []string{"internal/app"}},
	{"outside", []string{"cmd", "examples", "test", "internal/archtest"}},
}

// place returns the room of a package and the index of its layer.
func place(pkg string) (room string, height int, ok bool) {
	for h, l := range layers {
		for _, r := range l.rooms {
			if within(pkg, r) {
				return r, h, true
			}
		}
	}
	return "", 0, false
}

// climbs returns the imports of a file that do not go down. Tests may import anything.
func climbs(f file) []string {
	if f.isTest() {
		return nil
	}
	room, height, ok := place(f.pkg())
	if !ok {
		return []string{fmt.Sprintf("%s: package %s has no place in the table of layers; give it one", f.path, f.pkg())}
	}
	var wrong []string
	for _, imported := range f.imports {
		theirs, below, ours := place(imported)
		if !ours || theirs == room || below < height {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s (%s) imports %s (%s): imports go down only, "+
			"so that a lower room can be read, tested and kept without the ones above",
			f.path, room, layers[height].name, theirs, layers[below].name))
	}
	return wrong
}

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, wrong := range climbs(f) {
			t.Error(wrong)
		}
	}
}

func TestEveryRoomHasOnePlace(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, l := range layers {
		for _, room := range l.rooms {
			if other, twice := seen[room]; twice {
				t.Errorf("%s is in %s and in %s", room, other, l.name)
			}
			seen[room] = l.name
		}
	}
}

func TestTheLayersBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file file
		want int
	}{
		{file{path: "internal/order/x.go", imports: []string{"internal/id", "internal/postgres", "ent/order", "fmt"}}, 0},
		{file{path: "internal/order/x.go", imports: []string{"internal/checkout", "graph/model"}}, 2},
		{file{path: "internal/order/x.go", imports: []string{"internal/sale"}}, 1},
		{file{path: "internal/order/x_test.go", imports: []string{"internal/checkout"}}, 0},
		{file{path: "graph/guard/x.go", imports: []string{"graph/model"}}, 0},
		{file{path: "internal/helpers/x.go"}, 1},
	} {
		if got := climbs(c.file); len(got) != c.want {
			t.Errorf("%+v: %q, want %d findings", c.file, got, c.want)
		}
	}
	if !slices.ContainsFunc(goFiles(t), func(f file) bool { return f.path == "internal/postgres/tx.go" && len(f.imports) > 0 }) {
		t.Error("the walk does not see the files")
	}
}
