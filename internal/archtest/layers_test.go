package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// room is a folder of packages with one purpose. Its floors are from the lowest up: the packages of a
// floor do not import each other. A package is a folder of the room with all below it; "/" begins a
// path from the root.
type room struct {
	name   string
	floors [][]string
}

// rooms lists the rooms from the lowest up. A package may import itself, lower floors of its room, and
// lower rooms. README.md has the same list.
var rooms = []room{
	{"internal/platform", [][]string{
		{"collect"},
		{"accent", "id", "origin", "priority", "typed"},
		{"/docs", "/ent", "/migrations", "/web", "clock", "config", "fault", "locale", "money", "spreadsheet", "tracing"},
		{"postgres", "redisconn", "periodic", "batch", "cursor", "telemetry"},
		{"auth", "captcha", "media", "ratelimit", "stream"},
		{"deadletter", "notifier"},
	}},
	{"tests", [][]string{{"/internal/testenv"}, {"/internal/testdb"}}},
	{"internal/outbox", [][]string{{"queue"}, {"mail", "webhook"}, {"notice"}}},
	{"internal/identity", [][]string{{"person"}, {"recipient", "servicetoken"}, {"account"}, {"oidc"}}},
	{"internal/buy", [][]string{
		{"access", "draw"}, {"order", "reservation", "sale"}, {"orderfacts", "acceptance", "admission", "member", "refusal", "waitlist"}, {"salestats"}, {"checkout", "orderintake", "storefront"},
	}},
	{"internal/pay", [][]string{{"payment", "receipt"}}},
	{"internal/gate", [][]string{{"audit"}, {"preload", "reconcile"}, {"recordloss"}}},
	{"internal/staff", [][]string{{"operator", "report"}, {"inbox"}}},
	{"internal/ops", [][]string{{"apiclient", "history", "seed"}, {"doctor", "drill"}}},
	{"API", [][]string{{"/graph"}}},
	{"internal/app", [][]string{{"server"}, {"/internal/app"}}},
	{"outside", [][]string{{"/cmd", "/examples", "/test", "/internal/archtest"}}},
}

// site is the place of a package in the table.
type site struct {
	pkg         string
	room, floor int
}

// place returns the place of a package.
func place(pkg string) (site, bool) {
	for r, room := range rooms {
		for f, floor := range room.floors {
			for _, p := range floor {
				dir, rooted := strings.CutPrefix(p, "/")
				if !rooted {
					dir = room.name + "/" + p
				}
				if within(pkg, dir) {
					return site{dir, r, f}, true
				}
			}
		}
	}
	return site{}, false
}

// climbs returns the imports of a file that do not go down. Tests may import anything.
func climbs(f file) []string {
	if f.isTest() {
		return nil
	}
	own, ok := place(f.pkg())
	if !ok {
		return []string{fmt.Sprintf("%s: package %s has no place in the table of rooms; give it one", f.path, f.pkg())}
	}
	var wrong []string
	for _, imported := range f.imports {
		other, ours := place(imported)
		if !ours || other.pkg == own.pkg || other.room < own.room || other.room == own.room && other.floor < own.floor {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s imports %s: imports go down only, "+
			"so that a lower package can be read, tested and kept without the ones above", f.path, own.pkg, other.pkg))
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

// TestTheMapHasEveryPackage compares the README with the table.
func TestTheMapHasEveryPackage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		name := strings.TrimPrefix(r.name, "internal/")
		for _, p := range slices.Concat(r.floors...) {
			if strings.HasPrefix(p, "/") {
				continue
			}
			if _, err := os.Stat(filepath.Join("../..", r.name, p)); err != nil {
				t.Error(err)
			}
			if !regexp.MustCompile(`(?m)^  ` + name + `/ [^\n]*(\n {10}[^\n]*)*\b` + p + `\b`).Match(text) {
				t.Errorf("README.md: the map has no %s in %s/", p, name)
			}
		}
	}
}

func TestTheRoomsBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file file
		want int
	}{
		{file{path: "internal/buy/order/x.go", imports: []string{"internal/platform/id", "internal/platform/postgres", "ent/order", "fmt"}}, 0},
		{file{path: "internal/buy/order/x.go", imports: []string{"internal/buy/checkout", "graph/model"}}, 2},
		{file{path: "internal/buy/order/x.go", imports: []string{"internal/buy/sale"}}, 1},
		{file{path: "internal/buy/order/x_test.go", imports: []string{"internal/buy/checkout"}}, 0},
		{file{path: "graph/guard/x.go", imports: []string{"graph/model"}}, 0},
		{file{path: "internal/helpers/x.go"}, 1},
	} {
		if got := climbs(c.file); len(got) != c.want {
			t.Errorf("%+v: %q, want %d findings", c.file, got, c.want)
		}
	}
	if !slices.ContainsFunc(goFiles(t), func(f file) bool { return f.path == "internal/platform/postgres/tx.go" && len(f.imports) > 0 }) {
		t.Error("the walk does not see the files")
	}
}
