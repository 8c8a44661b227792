package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seckill/internal/ops/seed"
)

func TestASaleIsReportedAndExported(t *testing.T) {
	t.Parallel()
	environ := services(t)
	seeded := command(t, environ, "seed", "--users", "2", "--stock", "7", "--json")
	seeded.wants(t, exitOK)
	var made seed.Result
	if err := json.Unmarshal([]byte(seeded.stdout), &made); err != nil {
		t.Fatal(err)
	}
	page, table := filepath.Join(t.TempDir(), "report.html"), filepath.Join(t.TempDir(), "orders.csv")
	short := command(t, environ, "report", "--sale", made.SaleID, "--html", page)
	short.wants(t, exitOK)
	if !strings.Contains(short.stdout, "everything adds up") || !strings.Contains(short.stdout, "0 of 7 units") {
		t.Errorf("report: %s", short.stdout)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "<svg") {
		t.Errorf("page of %d bytes, error %v", len(text), err)
	}
	whole := command(t, environ, "report", "--sale", made.SaleID, "--json")
	whole.wants(t, exitOK)
	var report struct{ SaleID string }
	if err := json.Unmarshal([]byte(whole.stdout), &report); err != nil || report.SaleID != made.SaleID {
		t.Errorf("JSON: %v %+v", err, report)
	}
	command(t, environ, "export", "--sale", made.SaleID, "--out", table).wants(t, exitOK)
	if text, err := os.ReadFile(table); err != nil || !strings.HasPrefix(string(text), "\ufefforder_id,number,status") {
		t.Errorf("table %s, error %v", text, err)
	}
	log := command(t, environ, "user", "log")
	log.wants(t, exitOK)
	if lines := strings.Count(log.stdout, "ORDERS_EXPORTED"); lines != 1 || !strings.Contains(log.stdout, made.SaleID) {
		t.Errorf("security log after an export: %s", log.stdout)
	}
	for _, args := range [][]string{{"sales"}, {"sales", "--json"}, {"audit", "--all"}, {"audit", "--all", "--json"}} {
		listed := command(t, environ, args...)
		listed.wants(t, exitOK)
		if !strings.Contains(listed.stdout, made.SaleID) {
			t.Errorf("%v: %s", args, listed.stdout)
		}
	}
	command(t, environ, "audit", "--all", "--sale", made.SaleID).wants(t, exitUnfit, "--all")
	const gone = "sal_01jd8z3q4vftn8r2m5w6x7y8z9"
	command(t, environ, "report", "--sale", gone).wants(t, exitUnfit, "no sale")
	command(t, environ, "export", "--sale", gone, "--out", filepath.Join(t.TempDir(), "none.csv")).wants(t, exitUnfit, "no sale")
	command(t, environ, "report", "--sale", "x").wants(t, exitUnfit, "sal_")
}

func TestReportAndExportNeedNoSigningKey(t *testing.T) {
	t.Parallel()
	environ := services(t)
	seeded := command(t, environ, "seed", "--users", "1", "--stock", "3", "--json")
	seeded.wants(t, exitOK)
	var made seed.Result
	if err := json.Unmarshal([]byte(seeded.stdout), &made); err != nil {
		t.Fatal(err)
	}
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains(names, name)
		})
	}
	command(t, without("SECKILL_JWT_KEY"), "report", "--sale", made.SaleID).wants(t, exitOK)
	command(t, without("SECKILL_JWT_KEY", "SECKILL_REDIS_URL"), "export", "--sale", made.SaleID).wants(t, exitOK)
	for name, setting := range map[string][]string{"report": {"--database-url", "--redis-url"}, "export": {"--database-url"}} {
		help := command(t, nil, name, "--help")
		for _, flag := range setting {
			if !strings.Contains(help.stdout, flag) {
				t.Errorf("the help of %s hides %s:\n%s", name, flag, help.stdout)
			}
		}
		if strings.Contains(help.stdout, "--jwt-key") {
			t.Errorf("the help of %s shows the signing key", name)
		}
	}
}
