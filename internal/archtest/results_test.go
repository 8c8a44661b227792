package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// executors are the methods that execute a pipeline of Redis.
var executors = []string{"Exec", "Pipelined", "TxPipelined"}

// discarded returns the places of a file that drop the error of a pipeline: go-redis leaves
// the commands of a pipeline without an error of their own when the server refuses the
// connection, so that zero values pass for replies. redisconn.ExecEach is for callers
// that check each command.
func discarded(name string, source any) ([]string, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, source, 0)
	if err != nil {
		return nil, err
	}
	var wrong []string
	report := func(call ast.Expr) {
		if c, ok := call.(*ast.CallExpr); ok && executes(c) {
			wrong = append(wrong, fmt.Sprintf("%s: the error of a pipeline is dropped; check it, or use redisconn.ExecEach", fset.Position(c.Pos())))
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ExprStmt:
			report(n.X)
		case *ast.GoStmt:
			report(n.Call)
		case *ast.DeferStmt:
			report(n.Call)
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 && isBlank(n.Lhs[len(n.Lhs)-1]) {
				report(n.Rhs[0])
			}
		case *ast.ValueSpec:
			if len(n.Values) == 1 && n.Names[len(n.Names)-1].Name == "_" {
				report(n.Values[0])
			}
		}
		return true
	})
	return wrong, nil
}

func isBlank(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "_"
}

// executes reports whether a call executes a pipeline.
func executes(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(executors, s.Sel.Name)
}

// uncounted returns the functions of a file that catch a panic without counting it.
func uncounted(name string, source any) ([]string, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, source, 0)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, d := range parsed.Decls {
		recovers, counts := false, false
		ast.Inspect(d, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				switch f := c.Fun.(type) {
				case *ast.Ident:
					recovers = recovers || f.Name == "recover"
				case *ast.SelectorExpr:
					counts = counts || f.Sel.Name == "Caught"
				}
			}
			return true
		})
		if recovers && !counts {
			wrong = append(wrong, fmt.Sprintf("%s: a caught panic is not counted; call fault.Caught", fset.Position(d.Pos())))
		}
	}
	return wrong, nil
}

func TestNoErrorOfAPipelineIsDropped(t *testing.T) {
	t.Parallel()
	checkFiles(t, discarded, func(f file) bool { return slices.ContainsFunc(f.imports, isGoRedis) })
}

func TestEveryCaughtPanicIsCounted(t *testing.T) {
	t.Parallel()
	checkFiles(t, uncounted, func(f file) bool {
		return !within(f.pkg(), "test") && f.pkg() != "graph/transport" // whose Options.Recover counts, for generated code too
	})
}

func isGoRedis(imported string) bool { return within(imported, "github.com/redis/go-redis") }

// checkFiles applies a check to the files of the product that concern it.
func checkFiles(t *testing.T, check func(name string, source any) ([]string, error), concerns func(file) bool) {
	t.Helper()
	for _, f := range goFiles(t) {
		if f.isTest() || f.generated || !concerns(f) {
			continue
		}
		wrong, err := check(root(t)+"/"+f.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wrong {
			t.Error(strings.TrimPrefix(w, root(t)+"/"))
		}
	}
}

func TestTheChecksOfResultsFindTheirMistakes(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]int{
		"_, _ = pipe.Exec(ctx)":                                    1,
		"pipe.Exec(ctx)":                                           1,
		"cmds, _ := pipe.Exec(ctx)":                                1,
		"defer pipe.Exec(ctx)":                                     1,
		"go pipe.Exec(ctx)":                                        1,
		"var _, _ = pipe.Exec(ctx)":                                1,
		"_, _ = client.Pipelined(ctx, fill)":                       1,
		"client.TxPipelined(ctx, fill)":                            1,
		"if _, err := pipe.Exec(ctx); err != nil { return }":       0,
		"_, err := client.TxPipelined(ctx, fill); return err":      0,
		"redisconn.ExecEach(ctx, pipe)":                            0,
		"if v := recover(); v != nil { return }":                   1,
		"recover()":                                                1,
		"defer func() { fault.Caught(recover(), fault.InLoop) }()": 0,
	} {
		source := "package p\nfunc f() {\n" + statement + "\n}"
		check := discarded
		if strings.Contains(statement, "recover") {
			check = uncounted
		}
		wrong, err := check("p.go", source)
		if err != nil || len(wrong) != want {
			t.Errorf("%s: %d findings (%v), want %d: %q", statement, len(wrong), err, want, wrong)
		}
	}
}
