package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
)

func TestAnExportedLogIsVerifiedWithoutServices(t *testing.T) {
	t.Parallel()
	environ := services(t)
	seeded := command(t, environ, "seed", "--users", "1", "--stock", "7", "--json")
	seeded.wants(t, exitOK)
	var result seed.Result
	if err := json.Unmarshal([]byte(seeded.stdout), &result); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sale.jsonl")
	command(t, environ, "log", "export", "--sale", result.SaleID, "--out", file).wants(t, exitOK, "entries, head ")
	checked := command(t, nil, "log", "verify", file, "--json")
	checked.wants(t, exitOK)
	var v audit.Verification
	if err := json.Unmarshal([]byte(checked.stdout), &v); err != nil || !v.OK || v.SaleID != result.SaleID || v.Entries == 0 {
		t.Errorf("%v: %s", err, checked.stdout)
	}
	for _, c := range []struct {
		arguments []string
		verdict   string
	}{{[]string{"--head", v.Head}, "the log is intact"}, {nil, "Without --head a rewritten or truncated log cannot be detected"}} {
		out := command(t, nil, append([]string{"log", "verify", file}, c.arguments...)...)
		if out.wants(t, exitOK); !strings.Contains(out.stdout, c.verdict) {
			t.Errorf("%v: %s, want %q", c.arguments, out.stdout, c.verdict)
		}
	}
	command(t, nil, "log", "verify", file, "--head", strings.Repeat("a", 64)).wants(t, exitFinding)

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"quantity":7`, `"quantity":8`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	spoilt := command(t, nil, "log", "verify", file)
	spoilt.wants(t, exitFinding)
	if !strings.Contains(spoilt.stdout, "7 units are put on sale, and 8 by the moves") || !strings.Contains(spoilt.stdout, "not intact") {
		t.Errorf("printed\n%s", spoilt.stdout)
	}
	command(t, nil, "log", "verify", filepath.Join(t.TempDir(), "none")).wants(t, exitUnfit)
}
