package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTableOfFaultsShowsEveryRow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "faults.jsonl")
	var out strings.Builder
	if err := printFaults(&out, path); err != nil || out.Len() > 0 {
		t.Errorf("without rows: %q, %v", out.String(), err)
	}
	rows := `{"fault":"worker killed","accepted":5,"stored":5,"recovery":0,"max_recovery":30000000000,"holds":true}
{"fault":"master killed","accepted":6,"stored":4,"failed":1,"lost_units":1,"recovery":14000000000,"max_recovery":10000000000,"holds":false}
`
	if err := os.WriteFile(path, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := printFaults(&out, path); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "master killed 6 4 1 1 14s 10s NO" ||
		strings.Join(strings.Fields(lines[2]), " ") != "worker killed 5 5 0 0 - 30s yes" {
		t.Errorf("table:\n%s", out.String())
	}
}
