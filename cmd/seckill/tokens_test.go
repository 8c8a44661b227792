package main

import (
	"strings"
	"testing"
)

func TestServiceTokensAreManagedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	environ := services(t)
	run := func(args ...string) string {
		t.Helper()
		got := command(t, environ, append([]string{"token"}, args...)...)
		got.wants(t, exitOK)
		return got.stdout
	}
	refused := func(complaint string, args ...string) {
		t.Helper()
		command(t, environ, append([]string{"token"}, args...)...).wants(t, exitUnfit, complaint)
	}
	made := strings.Fields(run("create", "--name", "ERP", "--scopes", "orders:read,events:read"))
	if len(made) != 2 || !strings.HasPrefix(made[0], "svt_") || !strings.HasPrefix(made[1], "skst_") {
		t.Fatalf("create printed %q, want id and token", made)
	}
	if list := run("list"); !strings.Contains(list, "orders:read") || !strings.Contains(list, "never used") || strings.Contains(list, made[1]) {
		t.Errorf("list: %s", list)
	}
	refused(`--scopes "orders": choose from catalogue:read`, "create", "--name", "ERP", "--scopes", "orders")
	refused("--days 400: choose 1 to 366", "create", "--name", "ERP", "--scopes", "orders:read", "--days", "400")
	refused("starts with svt_", "revoke", "usr_1")
	run("revoke", made[0])
	refused("there is none with that id", "revoke", made[0])
	if list := run("list"); list != "" {
		t.Errorf("list after the end: %s", list)
	}
	log := command(t, environ, "user", "log")
	log.wants(t, exitOK)
	if strings.Count(log.stdout, "SERVICE_TOKEN_CHANGED") != 2 || strings.Contains(log.stdout, made[1]) {
		t.Errorf("the security log: %s", log.stdout)
	}
}
