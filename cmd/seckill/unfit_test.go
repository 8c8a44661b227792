package main

import (
	"net"
	"strings"
	"testing"
)

func TestServicesThatAreAwayAreALineEachWithTheSettingAndWhatToDo(t *testing.T) {
	t.Parallel()
	got := command(t, append(services(t), "SECKILL_REDIS_URL=redis://:hunter2@127.0.0.1:1/0",
		"SECKILL_DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/x?sslmode=disable"), "serve")
	got.wants(t, exitUnfit,
		"seckill: SECKILL_DATABASE_URL: postgres cannot be reached at postgres://***@127.0.0.1:1/x", "start Postgres there, or put the address right",
		"seckill: SECKILL_REDIS_URL: redis cannot be reached at redis://***@127.0.0.1:1/0", "start Redis there, or put the address right")
	if strings.Count(got.stderr, "\n") != 2 || strings.Contains(got.stderr, "hunter2") {
		t.Errorf("not one line each, without passwords:\n%s", got.stderr)
	}
}

func TestEveryCommandNamesTheDatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_DATABASE_URL=postgres://127.0.0.1:1/x?sslmode=disable")
	const sale = "sal_01jd8z3q4vftn8r2m5w6x7y8z9"
	for _, args := range [][]string{
		{"migrate", "up"},
		{"user", "create", "--account", "x@example.com", "--password", "a long enough password"},
		{"audit", "--sale", sale},
		{"export", "--sale", sale},
		{"report", "--sale", sale},
	} {
		got := command(t, environ, args...)
		got.wants(t, exitUnfit, "seckill: SECKILL_DATABASE_URL: postgres cannot be reached", "start Postgres there")
		if strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: not one line:\n%s", args, got.stderr)
		}
	}
}

func TestAPortThatIsTakenIsReportedWithItsSetting(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	also, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer also.Close()
	for want, settings := range map[string][]string{
		"SECKILL_HTTP_ADDR":  {"SECKILL_HTTP_ADDR=" + taken.Addr().String(), "SECKILL_ADMIN_ADDR=127.0.0.1:0"},
		"SECKILL_ADMIN_ADDR": {"SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=" + taken.Addr().String()},
		"SECKILL_HTTP_ADDR SECKILL_ADMIN_ADDR": {
			"SECKILL_HTTP_ADDR=" + taken.Addr().String(), "SECKILL_ADMIN_ADDR=" + also.Addr().String(),
		},
	} {
		names := strings.Fields(want)
		for _, what := range []string{"serve", "demo"} {
			got := command(t, append(services(t), settings...), what)
			for _, name := range names {
				got.wants(t, exitUnfit, "seckill: "+name+": ", "address already in use", "choose another port, or end what listens there")
			}
			if strings.Count(got.stderr, "\n") != len(names) {
				t.Errorf("%s, %s: not one line each:\n%s", what, want, got.stderr)
			}
		}
	}
}
