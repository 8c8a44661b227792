package sale_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"seckill/internal/buy/sale"
)

// update writes the state table into the documentation: go test ./internal/buy/sale -run
// Document -update.
var update = flag.Bool("update", false, "write the state table into the documentation")

const (
	statesFile  = "../../../docs/sale-states.md"
	statesBegin = "<!-- states: written by `go test ./internal/buy/sale -run Document -update` -->\n"
	statesEnd   = "<!-- end of states -->\n"
)

// movers names the actors of a move.
var movers = map[string]string{"o": "operator", "a": "admin", "c": "the clock", "oc": "operator, the clock", "ac": "admin, the clock"}

// drawn returns the state table: moves as a diagram, acts that keep the status as a table.
func drawn() string {
	var picture, table strings.Builder
	picture.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> DRAFT: CREATE (operator)\n")
	table.WriteString("| act | in | who |\n|---|---|---|\n")
	for _, act := range sale.Acts() {
		kept := map[string][]string{}
		for _, from := range sale.Statuses() {
			for _, to := range sale.Statuses() {
				who := wanted[act][from][to]
				switch {
				case who == "" || !sale.Allowed(act, from, to):
				case from == to:
					kept[movers[who]] = append(kept[movers[who]], string(from))
				default:
					fmt.Fprintf(&picture, "    %s --> %s: %s (%s)\n", from, to, act, movers[who])
				}
			}
		}
		for _, who := range slices.Sorted(maps.Keys(kept)) {
			fmt.Fprintf(&table, "| %s | %s | %s |\n", act, strings.Join(kept[who], ", "), who)
		}
	}
	return picture.String() + "```\n\n" + table.String()
}

func TestTheStateTableIsDrawnInTheDocumentation(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(raw), statesBegin)
	got, tail, ends := strings.Cut(rest, statesEnd)
	if !begins || !ends {
		t.Fatalf("no table between %q and %q", statesBegin, statesEnd)
	}
	want := drawn()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("the drawing is behind the code; run: go test ./internal/buy/sale -run Document -update\nwant:\n%s", want)
	}
	if err := os.WriteFile(statesFile, []byte(head+statesBegin+want+statesEnd+tail), 0o644); err != nil { //nolint:gosec // a public text
		t.Fatal(err)
	}
}
