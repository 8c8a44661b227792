package archtest

import (
	"bytes"
	"os"
	"path"
	"slices"
	"testing"
)

// maxLines is the limit for a hand-written file. A longer file has more than one subject
// and is split.
const maxLines = 400

// handWritten lists the extensions of files with this limit.
var handWritten = []string{".go", ".lua", ".ts", ".tsx", ".sh"}

func TestHandWrittenFilesStayShort(t *testing.T) {
	t.Parallel()
	counted := 0
	walk(t, func(rel, abs string) {
		if !slices.Contains(handWritten, path.Ext(rel)) || isGenerated(t, rel, abs) {
			return
		}
		text, err := os.ReadFile(abs)
		if err != nil {
			t.Fatal(err)
		}
		counted++
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines; %d at the most, so that a file has one subject", rel, lines, maxLines)
		}
	})
	if counted < 50 {
		t.Errorf("only %d files were looked at", counted)
	}
}
