package main

import (
	"strings"
	"testing"
)

func TestUsersAreManagedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	environ := services(t)
	const account = "clerk@example.com"
	command(t, environ, "user", "create", "--account", account, "--password", "a long enough password").wants(t, exitOK)
	command(t, environ, "user", "role", "--account", account, "--role", "operator").wants(t, exitOK)
	command(t, environ, "user", "disable", "--account", account, "--reason", "left the company").wants(t, exitOK)
	list := command(t, environ, "user", "list", "--prefix", "clerk")
	list.wants(t, exitOK)
	if !strings.Contains(list.stdout, "OPERATOR") || !strings.Contains(list.stdout, "disabled") {
		t.Errorf("list: %s", list.stdout)
	}
	command(t, environ, "user", "enable", "--account", account).wants(t, exitOK)
	command(t, environ, "user", "end-sessions", "--account", account).wants(t, exitOK)
	command(t, environ, "user", "reset-totp", "--account", account).wants(t, exitOK)
	commandWithInput(t, "violin tower 46 mist\n", environ, "user", "password", "--account", account).wants(t, exitOK)
	commandWithInput(t, "password1234\n", environ, "user", "password", "--account", account).wants(t, exitUnfit, "not a common password")
	command(t, environ, "user", "role", "--account", "unknown@example.com", "--role", "admin").wants(t, exitUnfit, "there is no such user")
	log := command(t, environ, "user", "log")
	log.wants(t, exitOK)
	for _, kind := range []string{"ROLE_CHANGED", "USER_DISABLED", "left the company", "USER_ENABLED", "SESSIONS_ENDED", "ONE_TIME_CODES_OFF", "PASSWORD_CHANGED"} {
		if !strings.Contains(log.stdout, kind) {
			t.Errorf("the log lacks %s: %s", kind, log.stdout)
		}
	}
}
