package graph

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/generated"
)

// The schema says what to use instead of a deprecated field or enum value, and the changelog
// names it.
func TestEveryDeprecationIsListedWithItsReplacement(t *testing.T) {
	t.Parallel()
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, list ast.DirectiveList) {
		d := list.ForName("deprecated")
		if d == nil {
			return
		}
		if reason := d.Arguments.ForName("reason").Value.Raw; !strings.HasPrefix(reason, "Use `") || !strings.Contains(string(changes), "`"+name+"`") {
			t.Errorf("%s is deprecated (%q): the changelog does not name it, or the reason names no replacement", name, reason)
		}
	}
	for name, def := range Schema().Types {
		for _, f := range def.Fields {
			if !def.BuiltIn {
				check(name+"."+f.Name, f.Directives)
			}
		}
		for _, v := range def.EnumValues {
			check(name+"."+v.Name, v.Directives)
		}
	}
}

// Every act that the log of a sale can have is a value of the enum.
func TestEveryActOfALogIsAValueOfItsEnum(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../internal/buy/sale/status.go")
	if err != nil {
		t.Fatal(err)
	}
	enum := generated.NewExecutableSchema(generated.Config{}).Schema().Types["SaleAct"].EnumValues
	acts := regexp.MustCompile(`Act\w+ +Act = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(acts) < 20 {
		t.Errorf("found %d acts", len(acts))
	}
	for _, act := range acts {
		if enum.ForName(string(act[1])) == nil {
			t.Errorf("SaleAct has no value %s", act[1])
		}
	}
}
