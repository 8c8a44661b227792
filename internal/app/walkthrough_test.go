package app

import (
	"os"
	"strings"
	"testing"
)

// docs/buyers-api.md contains the documents that the demo prints with the ids filled in.
func TestTheDemoPrintsTheDocumentsOfTheWalkthrough(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/buyers-api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range walkSteps("SALE_ID", "ITEM_ID") {
		if !strings.Contains(string(page), "```graphql\n"+s.document+"\n```") {
			t.Errorf("%s: not in docs/buyers-api.md:\n%s", s.title, s.document)
		}
	}
	printed := walkThrough("sal_1", "itm_1")
	for _, tab := range playgroundTabs("sal_1", "itm_1") {
		document := tab.Query
		for strings.HasPrefix(document, "#") {
			_, document, _ = strings.Cut(document, "\n")
		}
		if strings.Contains(document, "SALE_ID") || strings.Contains(document, "ITEM_ID") || strings.Count(document, "\n") < 4 {
			t.Errorf("%s: not filled in, or one long line:\n%s", tab.Title, document)
		}
		if !strings.Contains(printed, strings.ReplaceAll(strings.TrimSpace(document), "\n", "\n   ")) {
			t.Errorf("%s is not printed", tab.Title)
		}
	}
}
