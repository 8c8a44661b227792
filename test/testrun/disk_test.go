package main

import (
	"math"
	"strings"
	"testing"
)

func TestARunNamesADiskThatIsTooFull(t *testing.T) {
	dir := t.TempDir()
	if err := checkSpace(1, dir); err != nil {
		t.Errorf("one byte: %v", err)
	}
	if err := checkSpace(math.MaxUint64, dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("more than there is: %v; want an error that names %s", err, dir)
	}
}
