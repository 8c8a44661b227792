package graph

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"seckill/graph/generated"
)

// docs/api-policy.md has a row for each deprecated field and enum value, and the schema
// says what to use instead.
func TestEveryDeprecationIsListedWithItsReplacement(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/api-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	check := func(name string, reason string) {
		found++
		if !strings.HasPrefix(reason, "Use `") || !strings.Contains(string(page), "\n| `"+name+"` | ") {
			t.Errorf("%s is deprecated (%q): it has no row in docs/api-policy.md, or names no replacement", name, reason)
		}
	}
	for name, def := range generated.NewExecutableSchema(generated.Config{}).Schema().Types {
		for _, f := range def.Fields {
			if d := f.Directives.ForName("deprecated"); d != nil && !def.BuiltIn {
				check(name+"."+f.Name, d.Arguments.ForName("reason").Value.Raw)
			}
		}
		for _, v := range def.EnumValues {
			if d := v.Directives.ForName("deprecated"); d != nil {
				check(name+"."+v.Name, d.Arguments.ForName("reason").Value.Raw)
			}
		}
	}
	if rows := strings.Count(string(page), " | 0."); rows != found {
		t.Errorf("%d rows for %d deprecations", rows, found)
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
