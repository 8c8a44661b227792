package spreadsheet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"seckill/internal/platform/spreadsheet"
)

// read returns the rows of a file as line:account:name, and as line! those that cannot be
// read.
func read(t *testing.T, file string) []string {
	t.Helper()
	r, err := spreadsheet.NewReader(strings.NewReader(file), []string{"account", "name"}, "account")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for {
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return rows
		case err != nil:
			t.Fatal(err)
		case row.Err != nil:
			rows = append(rows, fmt.Sprintf("%d!", row.Line))
		default:
			rows = append(rows, fmt.Sprintf("%d:%s:%s", row.Line, row.Field("account"), row.Field("name")))
		}
	}
}

func encode(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	out, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFilesOfSpreadsheetsAreRead(t *testing.T) {
	t.Parallel()
	file := "account,name\r\na@example.com,电水壶\r\n+8613800138000,\"Li, Lei\"\r\n"
	want := []string{"2:a@example.com:电水壶", "3:+8613800138000:Li, Lei"}
	semicolons := "account;name\na@example.com;电水壶\n+8613800138000;Li, Lei\n"
	for name, text := range map[string]string{
		"RFC 4180":                 file,
		"byte order mark":          "\ufeff" + file,
		"quoted header":            "\ufeff\"account\",\"name\"\r\n" + strings.SplitN(file, "\r\n", 2)[1],
		"semicolons":               semicolons,
		"with the sign of Excel":   "sep=;\r\n" + semicolons,
		"tabs":                     strings.ReplaceAll(semicolons, ";", "\t"),
		"UTF-16, little endian":    encode(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), strings.ReplaceAll(semicolons, ";", "\t")),
		"UTF-16, big endian":       encode(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), file),
		"UTF-16 without a mark":    encode(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), file),
		"carriage returns":         strings.ReplaceAll(file, "\r\n", "\r"),
		"no line break at the end": strings.TrimSuffix(file, "\r\n"),
		"blank rows at the end":    file + ",\r\n\"\",\"\"\r\n\r\n",
		"blank columns":            strings.ReplaceAll(file, "\r\n", ",,\r\n"),
	} {
		got := read(t, text)
		if name == "with the sign of Excel" {
			for i := range got {
				got[i] = strings.Replace(got[i], fmt.Sprint(i+3), fmt.Sprint(i+2), 1)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestARowThatCannotBeReadEndsNoTable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{
		"short":         "b@example.com",
		"long":          "b@example.com,B,C",
		"open quote":    `b@example.com,"B`,
		"stray quote":   `b@example.com,B"`,
		"after a quote": `"b@example.com" x,B`,
		"GBK":           encode(t, simplifiedchinese.GBK, "b@example.com,电水壶"),
		"lost text":     "b@example.com,\ufffd",
		"long field":    "b@example.com," + strings.Repeat("B", 2000),
		"long line":     "b@example.com," + strings.Repeat("B", 100_000),
		"zero byte":     "b@example.com,\x00",
	} {
		got := read(t, "account,name\na@example.com,A\n"+row+"\nc@example.com,C\n")
		if want := []string{"2:a@example.com:A", "3!", "4:c@example.com:C"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A line break in a cell is written inside quotes. A quote that nothing closes costs its own
// line only.
func TestFieldsHaveLineBreaks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rows, want string }{
		"cell":              {"a@example.com,\"Li\n\nLei\"\nb@example.com,B\n", "2:a@example.com:Li\n\nLei 5:b@example.com:B"},
		"quotes in it":      {"\"a@example.com\",\"the \"\"Li\"\"\r\nLei\"\r\nb@example.com,B\r\n", "2:a@example.com:the \"Li\"\nLei 4:b@example.com:B"},
		"carriage returns":  {"a@example.com,\"Li\rLei\"\rb@example.com,B\r", "2:a@example.com:Li\nLei 4:b@example.com:B"},
		"at the end":        {"a@example.com,\"Li\nLei\"", "2:a@example.com:Li\nLei"},
		"open":              {"a@example.com,\"A\nb@example.com,B\nc@example.com,C\n", "2! 3:b@example.com:B 4:c@example.com:C"},
		"open, then a cell": {"a@example.com,\"A\nb@example.com,\"B\nB\"\nc@example.com,C\n", "2! 3:b@example.com:B\nB 5:c@example.com:C"},
		"open, then quotes": {"a@example.com,\"A\n\"b@example.com\",B\nc@example.com,C\n", "2! 3:b@example.com:B 4:c@example.com:C"},
		"open at the end":   {"a@example.com,A\nb@example.com,\"B", "2:a@example.com:A 3!"},
		"far away":          {"a@example.com,\"A\n" + strings.Repeat("b@example.com,B\n", 6000) + "c@example.com,C\"\n", ""},
	} {
		got := read(t, "account,name\n"+c.rows)
		if name == "far away" {
			if len(got) != 6002 || got[0] != "2!" || got[6001] != "6003!" {
				t.Errorf("%s: %d rows, %.20q", name, len(got), got)
			}
			continue
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
}

func TestAHeaderMustBeKnown(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"empty": "", "unknown": "account,role\n", "twice": "account,account\n", "missing": "name\n", "another encoding": "account,\xb5\xe7\n",
	} {
		if _, err := spreadsheet.NewReader(strings.NewReader(file), []string{"account", "name"}, "account"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTextsThatAreFormulasAreQuotedAndComeBack(t *testing.T) {
	t.Parallel()
	for text, quoted := range map[string]bool{
		"=1+1": true, "+8613800138000": true, "-5": true, "@SUM(A1)": true, "\t=1": true, "\n=1": true, " =1+1": true, "　=1": true, "＝1＋1": true,
		"'=1": true, "it's": false, "1-2": false, "": false, "电水壶": false, "'70s lamp": false,
	} {
		if safe := spreadsheet.Safe(text); (safe != text) != quoted || (quoted && safe != "'"+text) {
			t.Errorf("%q is written %q", text, safe)
		}
	}
	if err := quick.Check(func(text string) bool { return spreadsheet.Plain(spreadsheet.Safe(text)) == text }, nil); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w, err := spreadsheet.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]string{{"account", "name"}, {spreadsheet.Safe("+8613800138000"), spreadsheet.Safe(`=HYPERLINK("x")`)}, {"a@example.com", "A;, 电水壶"}} {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if !strings.HasPrefix(file.String(), "\ufeffaccount") {
		t.Errorf("the file begins %q", file.String()[:8])
	}
	if got, want := read(t, file.String()), []string{`2:+8613800138000:=HYPERLINK("x")`, "3:a@example.com:A;, 电水壶"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
