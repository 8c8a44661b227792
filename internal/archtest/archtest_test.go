// Package archtest checks the structure of the program: which room may import which,
// and which room may use which library. A failure
// names the rule and its reason; to change a rule, change the table here and say
// why in the commit.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the prefix of our own import paths.
const module = "seckill/"

// file is one Go file of the module.
type file struct {
	path      string   // from the root of the module, with slashes
	imports   []string // import paths; our own without the module's prefix
	generated bool
}

// pkg is the package of the file, as a path from the root.
func (f file) pkg() string { return path.Dir(f.path) }

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// root returns the root of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// walk calls visit for every file of ours, with its path from the root.
func walk(t *testing.T, visit func(rel, abs string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(abs string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, abs)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "."
			if hidden || d.Name() == "node_modules" || d.Name() == "testdata" || rel == "web/dist" || rel == "web/client/dist" || rel == "tools" {
				return fs.SkipDir
			}
			return nil
		}
		visit(rel, abs)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	parsing sync.Mutex
	parsed  []file // guarded by parsing
)

// goFiles returns all Go files of the module with their imports.
func goFiles(t *testing.T) []file {
	t.Helper()
	parsing.Lock()
	defer parsing.Unlock()
	if parsed == nil {
		parsed = parseGoFiles(t)
	}
	return parsed
}

func parseGoFiles(t *testing.T) []file {
	t.Helper()
	var files []file
	walk(t, func(rel, abs string) {
		if !strings.HasSuffix(rel, ".go") {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), abs, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		f := file{path: rel, generated: isGenerated(t, rel, abs)}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			f.imports = append(f.imports, strings.TrimPrefix(imported, module))
		}
		files = append(files, f)
	})
	return files
}

// isGenerated reports whether a file is made by a tool: by the standard line, or
// by where it lies.
func isGenerated(t *testing.T, rel, abs string) bool {
	t.Helper()
	if within(rel, "ent") && !within(rel, "ent/schema") || within(rel, "graph/generated") {
		return true
	}
	text, err := os.ReadFile(abs)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\npackage ")
	return strings.Contains(head, "Code generated ") || strings.Contains(path.Base(rel), ".gen.")
}

// within reports whether a path is dir or lies below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
