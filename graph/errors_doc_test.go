package graph

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/internal/platform/fault"
)

// docs/errors.md has a row for each code that a client can receive, and no other.
func TestTheErrorReferenceHasEveryCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## Codes of userErrors")
	userErrors, rest, _ := strings.Cut(rest, "## Codes of errors")
	faults, closing, found := strings.Cut(rest, "## Close codes")
	if !found {
		t.Fatal("docs/errors.md has not the expected three parts")
	}
	var codes []string
	for _, value := range generated.NewExecutableSchema(generated.Config{}).Schema().Types["ErrorCode"].EnumValues {
		codes = append(codes, value.Name)
	}
	sameRows(t, userErrors, codes)
	sameRows(t, faults, []string{
		string(fault.Unauthenticated), string(fault.Forbidden), string(fault.BadInput), string(fault.NotFound), string(fault.RateLimited),
		string(fault.Overloaded), string(fault.Unavailable), string(fault.Timeout), string(fault.Internal),
		guard.CodeTooComplex, guard.CodeNotTrusted, guard.CodeUnknownHash, guard.CodeNoRegistration, "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
	})
	source, err := os.ReadFile("transport/sockets.go")
	if err != nil {
		t.Fatal(err)
	}
	closeCodes := regexp.MustCompile(`websocket\.StatusCode = (\d{4})`).FindAllStringSubmatch(string(source), -1)
	if len(closeCodes) < 8 {
		t.Fatalf("%d close codes in transport/sockets.go", len(closeCodes))
	}
	for _, code := range closeCodes {
		if !strings.Contains(closing, "| "+code[1]+" |") {
			t.Errorf("close code %s has no row", code[1])
		}
	}
}

// sameRows compares the codes in the first column of a table.
func sameRows(t *testing.T, table string, want []string) {
	t.Helper()
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("rows  %q\ncodes %q", got, want)
	}
}
