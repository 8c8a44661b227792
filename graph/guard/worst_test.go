package guard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"seckill/graph/guard"
)

// worst returns the most expensive documents of at most 32 kB.
func worst(s *ast.Schema) map[string]string {
	const most = 32 << 10
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (most-len(head)-len(tail))/len(part)) + tail
	}
	pairs := "{" + repeat(10, "a%d:leaf ") + repeat(140, "node{id} ") + "}"
	unknown := "{" + repeat(240, "unknown_field_with_a_long_name_%03d ") + "}"
	spreads := "{" + repeat(20, "...F%d ") + "}" + repeat(20, "fragment F%d on Query{leaf node{id node{id}}} ")
	long := "{" + repeat(8, strings.Repeat("n", 60)+"%03d ") + "}"
	types := "{" + repeat(8, "...on "+strings.Repeat("N", 60)+"%03d{__typename} ") + "}"
	var fields, all strings.Builder
	for _, f := range s.Query.Fields {
		if len(f.Arguments) == 0 && !strings.HasPrefix(f.Name, "__") {
			fields.WriteString(f.Name + " ")
		}
	}
	for name, t := range s.Types {
		if t.Kind == ast.Object && all.Len() < 4000 {
			all.WriteString("...on " + name + "{__typename} ")
		}
	}
	args := "{" + repeat(120, "by(where:{idd:1}) ") + "}"
	return map[string]string{
		"bomb":                            "{...B0}" + bomb(),
		"brackets":                        fill("", "{", ""),
		"lists":                           fill("{leaf(x:", "[", ""),
		"comments":                        fill("", "#\n", "{leaf}"),
		"one comment":                     fill("#", "x", "\n{leaf}"),
		"one string":                      fill(`{by(where:{name:"`, "x", `"})}`),
		"escapes":                         fill(`{by(where:{name:"`, `\u0041`, `"})}`),
		"block string":                    fill(`{by(where:{name:"""`, "\n x", `"""})}`),
		"block string, indented":          fill(`{by(where:{name:"""`, "\n                x", `"""})}`),
		"block string, quotes":            fill(`{by(where:{name:"""`, `\"""`, `"""})}`),
		"fields":                          fill("{", "leaf ", "}"),
		"merging pairs":                   pairs,
		"merging through spreads":         spreads,
		"unknown fields":                  unknown,
		"long unknown fields":             long,
		"long unknown types":              types,
		"unknown input fields":            args,
		"known fields without selections": "{" + strings.Repeat(fields.String(), 40) + "}",
		"spreads on every type":           "{" + all.String() + "}",
		"merging typenames":               "{" + repeat(290, "__typename ") + "}",
		"merging nested":                  "{" + repeat(7, "node{"+repeat(20, "node{id} ")+"} ") + "}",
		"directives":                      fill("{leaf ", "@skip(if:true) ", "}"),
		"variables":                       "query(" + repeat(160, "$v%d:Int ") + "){leaf}",
		"operations":                      repeat(20, "query Q%d{"+strings.Repeat("leaf ", 40)+"} "),
		"operations with spreads":         repeat(15, "query Q%d{...F0} ") + chain(20),
		"zero bytes":                      fill("", "\x00", ""),
		"invalid UTF-8":                   fill(`{by(where:{name:"`, "\xff", `"})}`),
		"spaces":                          fill("", " ", "{leaf}"),
		"numbers":                         fill("{heavy(x:", "1", ")}"),
	}
}

// Any document is checked in at most three times what it takes to parse one of the same size
// (about 3 ms on the hardware of test/bench/performance.md), and nested fragment bombs in a tenth
// of that. Both are measured in turn, and one attempt within the bound is enough: a document
// that is too expensive exceeds it every time, whatever else runs on the machine.
func TestAnyDocumentIsDecidedQuickly(t *testing.T) {
	plain := &ast.Source{Input: worst(schema)["fields"]}
	for on, s := range map[string]*ast.Schema{"small schema": schema, "product": productSchema(t)} {
		for name, document := range worst(s) {
			most := 3.0
			if name == "bomb" {
				most = 0.3
			}
			best, parse := time.Hour, time.Hour
			var err *gqlerror.Error
			for tries := 0; tries < 2 || best.Seconds() > most*parse.Seconds() && tries < 200; tries++ {
				start := time.Now()
				if _, err := parser.ParseQuery(plain); err != nil {
					t.Fatal(err)
				}
				parse = min(parse, time.Since(start))
				h := newHarnessOn(t, s, guard.Options{Introspection: true})
				start = time.Now()
				err = h.run(document, nil)
				best = min(best, time.Since(start))
			}
			ratio := best.Seconds() / parse.Seconds()
			t.Logf("%-14s%-34s%-12v%-8.2f%s", on, name, best, ratio, code(err))
			if ratio > most {
				t.Errorf("%s (%d bytes) takes %v, %.1f times as long as parsing", name, len(document), best, ratio)
			}
		}
	}
}

func productSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("../schema/*.graphqls")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schema: %v", err)
	}
	var sources []*ast.Source
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: name, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}
