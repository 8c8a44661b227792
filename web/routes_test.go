package web

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

func TestRoutesAreThoseOfTheShop(t *testing.T) {
	t.Parallel()
	var declared []string
	for file, pattern := range map[string]string{
		"src/app.tsx": `<Route path="(/[^"*]*)"`, "src/operator/pages.ts": `(?m)^  '(/operate[^']*)':`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			declared = append(declared, found[1])
		}
	}
	known := slices.Sorted(slices.Values(routes))
	if slices.Sort(declared); !slices.Equal(declared, known) {
		t.Errorf("src has the pages\n%q, routes.go\n%q", declared, known)
	}
}

func TestHasPageIsFalseForUnknownPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/": true, "/s/phone": true, "/s/phone/": true, "/orders/ord_1/pay": true, "/operate/sales/sal_1/report": true,
		"/Sign-In": true, "/nope": false, "/s": false, "/s/a/b": false, "/orders/ord_1/paid": false, "/operate/nope": false,
	} {
		if got := HasPage(path); got != want {
			t.Errorf("%s exists: %t, want %t", path, got, want)
		}
	}
}
