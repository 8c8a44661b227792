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
	forms   string // separated by spaces; a form of two words is a phrase
	prefer  string
	allowed int // uses left in the tree; lower it when uses are removed, never raise it
}

// words is the closed list. docs/glossary.md explains the preferred terms.
var words = []word{
	{"nobody somebody anybody everybody", "no client, any client, the buyer: name who is meant", 21},
	{"whoever whosoever wherever", "the client, the buyer: name who is meant", 0},
	{"anew", "again", 0},
	{"betwixt naught aught lest", "a modern word", 0},
	{"in_earnest", "really", 0},
	{"who_wants who_asks who_has who_comes who_does", "the client that …", 3},
	{"lapse lapses lapsed lapsing lapser", "expire, expired, expiry", 12},
	{"cashier", "payments", 0},
	{"office", "admin", 0},
	{"desk desks cockpit", "admin, operator service, batcher: what it is", 5},
	{"teller tellers", "publisher", 0},
	{"tell tells told telling", "publish, return, report, show", 17},
	{"announce announces announced announcing announcement", "publish", 0},
	{"ender", "task failer", 0},
	{"abandon abandons abandoned", "fail", 0},
	{"retake retakes retaken", "reacquire", 0},
	{"tame", "retryable", 0},
	{"judge judges judged judging", "classify, check", 2},
	{"board boards", "stock cache", 0},
	{"gather gathers gathered", "batch", 0},
	{"standing standings", "status, reservation", 2},
	{"sight sights", "status", 0},
	{"outlook outlooks hope hopes", "restock outlook: RestockOutlook alone", 0},
	{"studio", "image pool", 0},
	{"heat", "penalty", 0},
	{"unmanned unheard", "a literal description", 0},
}

// kept are names of the schema, of JSON, Redis, SQL, metrics, their labels and libraries.
// Renaming them would break clients and stored data, so they are not counted.
var kept = regexp.MustCompile(`[rR]estock[ -]?[oO]utlooks?|[rR]estock_outlook|lapsed_?[oO]rders|LapsedOrders|"lapse[sd]"|"lapses:|KindRETAKE|[A-Z_]*(LAPSED|RETAKE)[A-Z_]*|"retake"|` +
	`"announce"|record, announce|announcements"|redeemed, lapsed|"heat:"|":heat:"|\.Gather\(\)`)

// spoken are the files whose words are checked.
var spoken = []string{".go", ".lua", ".graphqls", ".ts", ".tsx", ".md"}

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
	counts := make([]int, len(words))
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
				if n := w.uses(said); n > 0 {
					counts[i] += n
					found[i] = append(found[i], fmt.Sprintf("%s:%d: %s", rel, number+1, strings.TrimSpace(line)))
				}
			}
		}
	})
	for i, w := range words {
		if counts[i] > w.allowed {
			t.Errorf("%q has %d uses, at most %d are allowed: write %s\n%s",
				w.forms, counts[i], w.allowed, w.prefer, strings.Join(found[i], "\n"))
		}
		if w.allowed > counts[i] {
			t.Logf("%q has %d uses: lower its allowance from %d", w.forms, counts[i], w.allowed)
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
