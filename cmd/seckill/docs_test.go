package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"seckill/graph"
)

// top is the root of the module, relative to this package.
const top = "../.."

// pages returns the text of every Markdown page of the documentation, keyed by its path
// from the root of the module.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	add := func(path string) {
		text, err := os.ReadFile(filepath.Join(top, path))
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(path)] = string(text)
	}
	roots, err := filepath.Glob(top + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range roots {
		add(filepath.Base(page))
	}
	for _, folder := range []string{"docs", "deploy", "test/bench"} {
		err := fs.WalkDir(os.DirFS(top), folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".md") && !d.IsDir() {
				add(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

var (
	link        = regexp.MustCompile(`\[[^\]\n]*\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	fenced      = regexp.MustCompile("(?s)```.*?```")
)

// anchors returns the anchors of a page's headings, in GitHub's format.
func anchors(text string) []string {
	var list []string
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		list = append(list, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return list
}

func TestLinksOfTheDocumentationResolve(t *testing.T) {
	t.Parallel()
	texts := pages(t)
	for page, text := range texts {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
			}
			if _, err := os.Stat(filepath.Join(top, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, found[1])
			} else if anchor != "" && !slices.Contains(anchors(texts[path]), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", page, found[1], path)
			}
		}
	}
}

func TestEveryPageOfTheDocumentationIsInTheIndex(t *testing.T) {
	t.Parallel()
	texts := pages(t)
	for page := range texts {
		name := filepath.Base(page)
		if filepath.ToSlash(filepath.Dir(page)) == "docs" && name != "README.md" && !strings.Contains(texts["docs/README.md"], "("+name+")") {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}

func TestThePictureOfTheArchitectureIsDrawnFromItsSource(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(top + "/docs/architecture.dot")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(top + "/docs/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("<!-- source: %x -->", sha256.Sum256(source)); !strings.Contains(string(picture), want) {
		t.Error("docs/architecture.svg is of another source; run: make picture")
	}
}

var (
	// code matches a code block or an inline code span.
	code = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	// ofSeckill is a call of the binary: its subcommands, then its flags.
	ofSeckill = regexp.MustCompile(`(?m)(?:^|[\s;&(])(?:go run \./cmd/)?seckill((?: [a-z]+(?:-[a-z]+)*)+)([^\n#;|>` + "`" + `]*)`)
	ofMake    = regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)")
	ofScripts = regexp.MustCompile(`\bscripts/[a-z-]+`)
	flagName  = regexp.MustCompile(`--[a-z-]+`)
)

func TestCommandsOfTheDocumentationExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(top + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	helps := map[string]string{}
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "CHANGELOG") {
			continue // describes releases that had other commands
		}
		for _, span := range code.FindAllString(text, -1) {
			span = strings.Trim(span, "`")
			for _, found := range ofMake.FindAllStringSubmatch("`"+span, -1) {
				if !regexp.MustCompile(`(?m)^` + found[1] + `:`).Match(makefile) {
					t.Errorf("%s: the Makefile has no target %s", page, found[1])
				}
			}
			for _, script := range ofScripts.FindAllString(span, -1) {
				if _, err := os.Stat(filepath.Join(top, script)); err != nil {
					t.Errorf("%s: %s does not exist", page, script)
				}
			}
			for _, found := range ofSeckill.FindAllStringSubmatch(span, -1) {
				name := strings.TrimSpace(found[1])
				if _, known := helps[name]; !known {
					got := command(t, nil, append(strings.Fields(name), "--help")...)
					if got.code != exitOK {
						t.Errorf("%s: seckill %s: %s", page, name, got.stderr)
					}
					helps[name] = got.stdout
				}
				for _, flag := range flagName.FindAllString(found[2], -1) {
					if helps[name] != "" && !strings.Contains(helps[name], flag) {
						t.Errorf("%s: seckill %s has no flag %s", page, name, flag)
					}
				}
			}
		}
	}
	if len(helps) < 8 {
		t.Errorf("found only %d commands in the documentation", len(helps))
	}
}

// The documents of all pages are valid in the API; those of docs/buyers-api.md are run too.
func TestDocumentsOfTheDocumentationFitTheAPI(t *testing.T) {
	t.Parallel()
	schema, found := graph.Schema(), 0
	for page, text := range pages(t) {
		for _, block := range regexp.MustCompile("(?s)```graphql\n(.*?)```").FindAllStringSubmatch(text, -1) {
			found++
			if _, errs := gqlparser.LoadQueryWithRules(schema, block[1], rules.NewDefaultRules()); errs != nil {
				t.Errorf("%s: %v\n%s", page, errs, block[1])
			}
		}
	}
	if found < 15 {
		t.Errorf("%d documents", found)
	}
}

// The documentation page for front-end developers contains a module that buys a unit. It
// is run unchanged.
func TestTheModuleOfThePageForApplicationsBuysAUnit(t *testing.T) {
	t.Parallel()
	_, rest, begins := strings.Cut(pages(t)["docs/integrate-a-spa.md"], "```js\n")
	module, _, ends := strings.Cut(rest, "```")
	if !begins || !ends {
		t.Fatal("docs/integrate-a-spa.md has no module")
	}
	if lines := strings.Count(module, "\n"); lines > 60 {
		t.Errorf("the module has %d lines, more than 60", lines)
	}
	file := filepath.Join(t.TempDir(), "buy.mjs")
	if err := os.WriteFile(file, []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDemo(t)
	node := exec.CommandContext(t.Context(), "node", file)
	node.Env = append(os.Environ(), "SECKILL_URL="+d.url)
	out, err := node.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "SNAPSHOT ") || !regexp.MustCompile(`SUCCEEDED \S+`).Match(out) {
		t.Fatalf("node: %v\n%s", err, out)
	}
}

var (
	testDeclared = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	testNamed    = regexp.MustCompile("`(Test[A-Z]\\w*)")
	testFile     = regexp.MustCompile("`(web/[a-z0-9/]+\\.test\\.tsx?)`")
)

func TestTestsOfTheDocumentationExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, root := range []string{"cmd", "graph", "internal", "test", "web"} {
		err := filepath.WalkDir(filepath.Join(top, root), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "node_modules":
				return fs.SkipDir
			case !strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, found := range testDeclared.FindAllSubmatch(text, -1) {
				declared[string(found[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := 0
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "CHANGELOG") {
			continue // describes releases that had other tests
		}
		for _, found := range testNamed.FindAllStringSubmatch(text, -1) {
			if named++; !declared[found[1]] {
				t.Errorf("%s: there is no test %s", page, found[1])
			}
		}
		for _, found := range testFile.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(top, found[1])); err != nil {
				t.Errorf("%s: %s does not exist", page, found[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("found %d tests in the documentation", named)
	}
}

// requirementLine matches a line of docs/requirements.md: id, then text and tests.
var requirementLine = regexp.MustCompile(`(?m)^- \*\*([A-Z][0-9]+)\*\* (.+)$`)

func TestEveryRequirementHasATestOrIsOpen(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for letter, n := range map[string]int{"A": 8, "G": 11, "C": 10, "T": 7, "O": 7, "P": 10, "R": 6, "I": 6, "L": 6, "X": 4, "E": 12, "N": 8, "D": 21} {
		for i := range n {
			missing[letter+strconv.Itoa(i+1)] = true
		}
	}
	text, err := os.ReadFile(filepath.Join(top, "docs", "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range requirementLine.FindAllStringSubmatch(string(text), -1) {
		id, says := line[1], line[2]
		if !missing[id] {
			t.Errorf("%s is no requirement, or stands twice", id)
		}
		delete(missing, id)
		if !testNamed.MatchString(says) && !testFile.MatchString(says) && !strings.Contains(says, "**Open:**") {
			t.Errorf("%s has no test and is not open: %s", id, says)
		}
	}
	if len(missing) > 0 {
		t.Errorf("requirements without a line: %v", slices.Sorted(maps.Keys(missing)))
	}
}
