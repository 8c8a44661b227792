package main

import (
	"bytes"
	"strings"
	"testing"

	"seckill/internal/gate/audit"
)

func TestTheAuditSaysWhatItDidNotCheckAndThatIsNoFinding(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printReport(&out, &audit.Report{SaleID: "sal_1", OK: true, Notes: []string{"Not checked."}}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "note      Not checked.") || !strings.Contains(text, "it adds up") || strings.Contains(text, "finding") {
		t.Errorf("audit says\n%s", text)
	}
}
