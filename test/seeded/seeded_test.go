package main

import (
	"os"
	"testing"
)

func TestEachSeededFaultChangesALineThatIsThere(t *testing.T) {
	if err := os.Chdir("../.."); err != nil { //nolint:usetesting // files are named from the root; no test runs beside
		t.Fatal(err)
	}
	for _, f := range faults {
		if _, err := f.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}
