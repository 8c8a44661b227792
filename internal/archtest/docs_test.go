package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pathRow is a row of the table "The path of an order": step, packages, files with their
// functions, the text in package app that connects the step.
var pathRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| (`[^|]+) \\| (`[^|]+) \\| `([^`]+)`: `([^`]+)` \\|")

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	function = regexp.MustCompile("`([\\w./]+\\.(?:go|lua))`(?:: `(\\w+)`(?:, `(\\w+)`)?)?")
)

func TestThePathOfAnOrderNamesFunctionsThatExist(t *testing.T) {
	t.Parallel()
	named := 0
	for _, row := range pathRow.FindAllStringSubmatch(read(t, "docs/architecture.md"), -1) {
		packages := quoted.FindAllStringSubmatch(row[1], -1)
		for _, found := range function.FindAllStringSubmatch(row[2], -1) {
			for _, name := range found[2:] {
				named++
				if !declared(t, packages, found[1], name) {
					t.Errorf("docs/architecture.md: no %s with %q in %s", found[1], name, row[1])
				}
			}
		}
		if !strings.Contains(read(t, "internal/app/"+row[3]), row[4]) {
			t.Errorf("docs/architecture.md: no %q in internal/app/%s", row[4], row[3])
		}
	}
	if named < 30 {
		t.Errorf("%d functions found: has the table another form?", named)
	}
}

func read(t *testing.T, rel string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// address is an address of Postgres with a user or an ellipsis.
var address = regexp.MustCompile(`postgres(?:ql)?://(?:\w+:\w+@|…)[^\s"'` + "`" + `)]*`)

// TestEveryAddressOfPostgresSaysItsEncryption: versions of the driver differ in what they take
// for an address that says nothing, and people copy what they read.
func TestEveryAddressOfPostgresSaysItsEncryption(t *testing.T) {
	t.Parallel()
	seen := 0
	walk(t, func(rel, abs string) {
		covered := within(rel, "docs") || within(rel, "deploy") || within(rel, "examples") || within(rel, "cmd") || within(rel, "internal/platform/config") ||
			within(rel, "internal/platform/postgres") || within(rel, "internal/ops/doctor") || rel == "README.md" || rel == "CONTRIBUTING.md"
		if !covered || strings.HasSuffix(rel, "_test.go") {
			return
		}
		text, err := os.ReadFile(abs)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range address.FindAllString(string(text), -1) {
			seen++
			if !strings.Contains(found, "sslmode=") {
				t.Errorf("%s: %s does not say ?sslmode=", rel, found)
			}
		}
	})
	if seen < 8 {
		t.Errorf("%d addresses found: have they another form?", seen)
	}
}

// declared reports whether a package has the file, with the function unless its name is "".
func declared(t *testing.T, packages [][]string, file, name string) bool {
	t.Helper()
	for _, p := range packages {
		code, err := os.ReadFile(filepath.Join("../..", p[1], file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if name == "" || regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+name+`\b`).Match(code) {
			return true
		}
	}
	return false
}
