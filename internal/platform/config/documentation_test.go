package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// update writes the table of docs/configuration.md: go test ./internal/platform/config -run Documentation -update.
var update = flag.Bool("update", false, "write the table of settings into docs/configuration.md")

const (
	page       = "../../../docs/configuration.md"
	tableBegin = "<!-- settings: written by `go test ./internal/platform/config -run Documentation -update` -->\n"
	tableEnd   = "<!-- end of settings -->\n"
)

func TestTheDocumentationListsEverySetting(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(raw), tableBegin)
	got, tail, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("docs/configuration.md has no table between %q and %q", tableBegin, tableEnd)
	}
	want := table(t)
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("docs/configuration.md differs from the settings; run: go test ./internal/platform/config -run Documentation -update\nwant:\n%s", want)
	}
	if err := os.WriteFile(page, []byte(head+tableBegin+want+tableEnd+tail), 0o644); err != nil { //nolint:gosec // a public page
		t.Fatal(err)
	}
}

func table(t *testing.T) string {
	t.Helper()
	_, settings, err := Parse(nil, env())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| variable, or key of a table | default | what it does |\n|---|---|---|\n")
	for _, g := range Groups() {
		fmt.Fprintf(&b, "| **%s** | | |\n", strings.TrimPrefix(g.Title, "Settings: "))
		for _, s := range settings {
			if s.Group != g.Key {
				continue
			}
			value := ""
			if s.Default != "" {
				value = "`" + s.Default + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", Name(s.Flag), value, strings.ReplaceAll(s.Help, "|", `\|`))
		}
	}
	return b.String()
}
