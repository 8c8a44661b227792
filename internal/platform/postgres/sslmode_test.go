package postgres_test

import (
	"os"
	"testing"

	"seckill/internal/platform/postgres"
)

// TestAnAddressWithoutSSLModeIsEncrypted keeps what lib/pq 1.12 does, whatever a later
// version takes for an address that says nothing.
func TestAnAddressWithoutSSLModeIsEncrypted(t *testing.T) {
	t.Setenv("PGSSLMODE", "") // restored afterwards
	if err := os.Unsetenv("PGSSLMODE"); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]struct {
		mode string
		says bool
	}{
		"postgres://u:p@a:5432/shop":                                        {"require", false},
		"postgres://u:p@a:5432,b:5433/shop?target_session_attrs=read-write": {"require", false},
		"postgres://u:p@a/shop?application_name=sslmode":                    {"require", false},
		"postgres://u:p@a/shop?sslmode=disable":                             {"disable", true},
		"postgres://u:p@a:1,b:2/shop?sslmode=prefer":                        {"prefer", true},
		"postgres://u:p@a/shop?sslmode=verify-full":                         {"verify-full", true},
		"postgres://u:p@a/shop?sslrootcert=system":                          {"verify-full", false},
		"postgres:///shop?host=/run/postgresql":                             {"disable", false},
		"host=a dbname=shop":                                                {"require", false},
		"host=a dbname=shop sslmode = disable":                              {"disable", true},
		"sslmode=prefer host=a":                                             {"prefer", true},
		"postgres://%zz":                                                    {"", false},
	} {
		if mode, says := postgres.SSLMode(address), postgres.SaysSSLMode(address); mode != want.mode || says != want.says {
			t.Errorf("%s: %q (said %v), want %q (%v)", address, mode, says, want.mode, want.says)
		}
	}
	t.Setenv("PGSSLMODE", "disable")
	if mode := postgres.SSLMode("postgres://u:p@a/shop"); mode != "disable" || !postgres.SaysSSLMode("postgres://u:p@a/shop") {
		t.Errorf("with PGSSLMODE=disable: %q", mode)
	}
}
