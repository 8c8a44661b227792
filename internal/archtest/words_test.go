package archtest

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// word is a word, in all its forms, that has a standard term in this field.
type word struct {
	forms  string // separated by spaces; a form of two words is a phrase
	prefer string
}

// words is the closed list. docs/glossary.md explains the preferred terms.
var words = []word{
	{"nobody somebody anybody everybody", "no client, any client, the buyer: name who is meant"},
	{"whoever whosoever wherever", "the client, the buyer: name who is meant"},
	{"anew", "again"},
	{"betwixt naught aught lest", "a modern word"},
	{"in_earnest", "really"},
	{"who_wants who_asks who_has who_comes who_does", "the client that …"},
	{"lapse lapses lapsed lapsing lapser", "expire, expired, expiry"},
	{"cashier", "payments"},
	{"office", "admin"},
	{"desk desks cockpit", "admin, operator service, batcher: what it is"},
	{"teller tellers", "publisher"},
	{"tell tells told telling", "publish, return, report, show"},
	{"announce announces announced announcing announcement", "publish"},
	{"ender", "task failer"},
	{"abandon abandons abandoned", "fail"},
	{"retake retakes retaken", "reacquire"},
	{"tame", "retryable"},
	{"judge judges judged judging", "classify, check"},
	{"board boards", "stock cache"},
	{"gather gathers gathered", "batch"},
	{"standing standings", "status, reservation"},
	{"sight sights", "status"},
	{"outlook outlooks hope hopes", "restock outlook: RestockOutlook alone"},
	{"studio", "image pool"},
	{"heat", "penalty"},
	{"unmanned unheard", "a literal description"},
}

// kept are names of the schema, of JSON, Redis, SQL, metrics, their labels and libraries.
// Renaming them would break clients and stored data, so they are not counted.
var kept = regexp.MustCompile(`[rR]estock[ -]?[oO]utlooks?|[rR]estock_outlook|lapsed_?[oO]rders|(orders|units)\.lapsed|LapsedOrders|"lapse[sd]"|"lapses:|KindRETAKE|[A-Z_]*(LAPSED|RETAKE)[A-Z_]*|"retake"|` +
	`"announce"|record, announce|announcements"|redeemed, lapsed|"heat:"|":heat:"|\.Gather\(\)`)

// spoken are the files whose words are checked.
var spoken = []string{".go", ".lua", ".graphqls", ".ts", ".tsx", ".md", ".gohtml"}

// unchecked are the change log, which records what was, and this list.
var unchecked = []string{"CHANGELOG.md", "internal/archtest/words_test.go"}

// wordPart is one word of prose or one part of an identifier: "lapsedOrders" has two.
var wordPart = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// tokens returns the words of a line in lower case, each between two spaces.
func tokens(line string) string {
	return " " + strings.ToLower(strings.Join(wordPart.FindAllString(kept.ReplaceAllString(line, ""), -1), " ")) + " "
}

// uses returns how many forms of w the tokens of a line contain.
func (w word) uses(line string) int {
	n := 0
	for _, form := range w.allForms() {
		n += strings.Count(line, " "+form+" ")
	}
	return n
}

// allForms returns the forms; "_" joins the words of a phrase.
func (w word) allForms() []string {
	forms := strings.Fields(w.forms)
	for i := range forms {
		forms[i] = strings.ReplaceAll(forms[i], "_", " ")
	}
	return forms
}

func TestWordsAreTheTermsOfTheField(t *testing.T) {
	t.Parallel()
	found := make([][]string, len(words))
	walk(t, func(rel, abs string) {
		if !slices.Contains(spoken, path.Ext(rel)) || slices.Contains(unchecked, rel) || isGenerated(t, rel, abs) {
			return
		}
		text, err := os.ReadFile(abs)
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range strings.Split(string(text), "\n") {
			said := tokens(line)
			for i, w := range words {
				if w.uses(said) > 0 {
					found[i] = append(found[i], fmt.Sprintf("%s:%d: %s", rel, number+1, strings.TrimSpace(line)))
				}
			}
		}
	})
	for i, w := range words {
		if len(found[i]) > 0 {
			t.Errorf("%q: write %s\n%s", w.forms, w.prefer, strings.Join(found[i], "\n"))
		}
	}
}

func TestTheWordsBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form, line string
		want       int
	}{
		{"lapsed", "func lapsedAt() // what lapsed elapsed", 2},
		{"lapsed", "the JSON name lapsedOrders stays", 0},
		{"who_wants", "// for a client who wants it", 1},
	} {
		if got := (word{forms: c.form}).uses(tokens(c.line)); got != c.want {
			t.Errorf("%q in %q: %d uses, want %d", c.form, c.line, got, c.want)
		}
	}
}
