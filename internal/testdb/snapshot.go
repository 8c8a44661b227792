package testdb

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

// Snapshot copies the database at a URL that this package returned. The returned function
// puts the copy in its place, once: what was committed meanwhile is gone, as after a
// failover to a standby that had not received it. Both end all connections of the database.
func Snapshot(t testing.TB, address string) (goBack func()) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server, name := testenv.DatabaseURL(t), strings.TrimPrefix(u.Path, "/")
	saved := "saved_" + hex.EncodeToString(testenv.RandomBytes())
	alone := func(statements ...string) {
		t.Helper()
		all := append([]string{
			fmt.Sprintf(`ALTER DATABASE %q ALLOW_CONNECTIONS false`, name),
			fmt.Sprintf(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '%s'`, name),
		}, statements...)
		for _, statement := range append(all, fmt.Sprintf(`ALTER DATABASE %q ALLOW_CONNECTIONS true`, name)) {
			if err := maintain(server, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	alone(fmt.Sprintf(`CREATE DATABASE %q TEMPLATE %q STRATEGY FILE_COPY`, saved, name))
	t.Cleanup(func() {
		if err := maintain(server, fmt.Sprintf(`DROP DATABASE IF EXISTS %q WITH (FORCE)`, saved)); err != nil {
			t.Errorf("drop the copy of a database: %v", err)
		}
	})
	return func() {
		t.Helper()
		alone(
			fmt.Sprintf(`DROP DATABASE %q WITH (FORCE)`, name),
			fmt.Sprintf(`ALTER DATABASE %q RENAME TO %q`, saved, name),
		)
	}
}
