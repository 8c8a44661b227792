package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// pathRow is a row of the table "The path of an order": step, packages, files with their
// functions.
var pathRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| (`[^|]+) \\| (`[^|]+) \\|")

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	function = regexp.MustCompile("`([\\w./]+\\.go)`(?:: `(\\w+)`)?")
)

func TestThePathOfAnOrderNamesFunctionsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, row := range pathRow.FindAllStringSubmatch(string(text), -1) {
		for _, found := range function.FindAllStringSubmatch(row[2], -1) {
			named++
			if !declared(t, quoted.FindAllStringSubmatch(row[1], -1), found[1], found[2]) {
				t.Errorf("docs/architecture.md: no %s with %q in %s", found[1], found[2], row[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("%d functions found: has the table another form?", named)
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
