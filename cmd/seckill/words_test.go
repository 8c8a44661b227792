package main

import (
	"strings"
	"testing"
)

func TestMistakesAreReportedInWordsWithWhatToDo(t *testing.T) {
	t.Parallel()
	const password = "a long enough password"
	away := []string{"SECKILL_DATABASE_URL=postgres://127.0.0.1:1/x?sslmode=disable"}
	for want, args := range map[string][]string{
		"`seckill serve --help` shows how":                                            {"serve", "--nope"},
		"`seckill user create --help` shows how":                                      {"user", "create", "--nope"},
		"`seckill --help` shows how":                                                  {"sell"},
		"--sale: nothing follows it, but a value has to":                              {"audit", "--sale"},
		`"loud" is not one of debug, info, warn, error`:                               {"doctor", "--log-level", "loud"},
		`"foo" is neither an address nor a network: write 10.0.0.7 or 10.0.0.0/8`:     {"doctor", "--trusted-proxies", "foo"},
		`--role "boss" is no role: choose from customer, operator, admin`:             {"user", "create", "--account", "x@example.com", "--role", "boss", "--password", password},
		"--password: give at least 10 characters":                                     {"user", "create", "--account", "x@example.com", "--password", "short"},
		"--account: give an e-mail address, or a phone number with its country code":  {"user", "create", "--account", "unknown", "--password", password},
		"--password: give another one than the account itself":                        {"user", "create", "--account", "admin@example.com", "--password", "admin@example.com"},
		"--name: give at most 32 characters":                                          {"user", "create", "--account", "x@example.com", "--name", strings.Repeat("x", 33), "--password", password},
		"x@example.com has an account already: sign in with it, or give another name": {"user", "create", "--account", "x@example.com", "--password", password},
	} {
		environ := away
		if args[0] == "user" && !strings.Contains(want, "--role") {
			environ = services(t)
		}
		if strings.Contains(want, "already") {
			command(t, environ, args...).wants(t, exitOK)
		}
		got := command(t, environ, args...)
		got.wants(t, exitUnfit, want)
		if strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: not one line:\n%s", args, got.stderr)
		}
	}
	got := command(t, []string{"SECKILL_LOG_LEVEL=loud", "SECKILL_TRUSTED_PROXIES=foo"}, "doctor")
	got.wants(t, exitUnfit, `SECKILL_LOG_LEVEL: "loud" is not one of`, `SECKILL_TRUSTED_PROXIES: "foo" is neither`)
}
