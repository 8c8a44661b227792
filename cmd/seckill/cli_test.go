package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"seckill/internal/platform/config"
	"seckill/internal/platform/telemetry"
)

// commands lists all commands.
var commands = []string{
	"demo", "serve", "migrate up", "migrate status", "seed", "user create", "audit", "capacity", "doctor",
	"schema print", "config print", "version", "completion",
}

func TestEveryCommandHelpsWithExamples(t *testing.T) {
	t.Parallel()
	root := command(t, nil, "--help")
	root.wants(t, exitOK)
	for _, name := range commands {
		if !strings.Contains(root.stdout, name) {
			t.Errorf("the help does not list %q", name)
		}
		got := command(t, nil, append(strings.Fields(name), "--help")...)
		got.wants(t, exitOK)
		if !strings.Contains(got.stdout, "Examples:") || !strings.Contains(got.stdout, "seckill "+name) {
			t.Errorf("%s: help without examples:\n%s", name, got.stdout)
		}
	}
	if strings.Contains(root.stdout, "__complete") {
		t.Error("the help lists the inside of completion")
	}
}

func TestTheHelpOfServeListsEverySettingAndItsVariable(t *testing.T) {
	t.Parallel()
	_, settings, err := config.Parse(nil, lookupIn(nil))
	if err != nil {
		t.Fatal(err)
	}
	help := strings.Join(strings.Fields(command(t, nil, "serve", "--help").stdout), " ")
	for _, s := range settings {
		if !strings.Contains(help, "--"+s.Flag) || !strings.Contains(help, "["+config.Name(s.Flag)+"]") {
			t.Errorf("%s is missing", s.Flag)
		}
	}
	if strings.Contains(command(t, nil, "version", "--help").stdout, "SECKILL_") {
		t.Error("the help of version lists settings")
	}
}

func TestWhatIsMissingIsOneLineEachAndExitTwo(t *testing.T) {
	t.Parallel()
	got := command(t, nil, "serve")
	got.wants(t, exitUnfit, "seckill: SECKILL_DATABASE_URL is not set", "seckill: SECKILL_REDIS_URL is not set", "seckill: SECKILL_JWT_KEY is not set")
	if n := strings.Count(got.stderr, "\n"); n != 3 {
		t.Errorf("%d lines, want 3:\n%s", n, got.stderr)
	}
}

func TestUnusableArgumentsAreExitTwo(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"unexpected argument sell":               {"sell"},
		"unknown flag --colour":                  {"version", "--colour"},
		`--roles has "cook": choose from api`:    {"serve", "--roles", "api,cook"},
		"expected duration":                      {"serve", "--path-ttl", "soon"},
		"missing flags: --sale":                  {"audit"},
		`--sale "gds_1" is not the id of a sale`: {"audit", "--sale", "gds_1"},
		"must be one of":                         {"completion", "cmd"},
		"SECKILL_PATH_TTL: ":                     {"doctor"},
		"the file of settings cannot be read":    {"config", "print", "--config", "/does/not/exist.toml"},
		"expected one of":                        {},
	} {
		var environ []string
		if want == "SECKILL_PATH_TTL: " {
			environ = []string{"SECKILL_PATH_TTL=soon"}
		}
		command(t, environ, args...).wants(t, exitUnfit, want)
	}
}

func TestConfigPrintShowsWhereValuesComeFrom(t *testing.T) {
	t.Parallel()
	environ := []string{"SECKILL_JWT_KEY=" + key, "SECKILL_ADMIN_ADDR=127.0.0.1:1", "SECKILL_DATABASE_URL=postgres://u:hunter2@h/d"}
	got := command(t, environ, "config", "print", "--http-addr", ":1234")
	got.wants(t, exitOK)
	lines := map[string][]string{}
	for line := range strings.Lines(got.stdout) {
		if fields := strings.Fields(line); len(fields) > 2 {
			lines[fields[0]] = fields[1:]
		}
	}
	for name, want := range map[string][]string{
		"SECKILL_HTTP_ADDR":    {":1234", "flag"},
		"SECKILL_ADMIN_ADDR":   {"127.0.0.1:1", "SECKILL_ADMIN_ADDR"},
		"SECKILL_DATABASE_URL": {"postgres://***@h/d", "SECKILL_DATABASE_URL"},
		"SECKILL_PATH_TTL":     {"1m0s", "default"},
	} {
		if !slices.Equal(lines[name], want) {
			t.Errorf("%s is %q, want %q", name, lines[name], want)
		}
	}
	all := got.stdout + command(t, environ, "config", "print", "--json").stdout
	if strings.Contains(all, key) || strings.Contains(all, "hunter2") || !strings.Contains(got.stdout, "(key id ") {
		t.Errorf("secrets show, or the key id does not:\n%s", all)
	}
}

func TestVersionShowsTheBuild(t *testing.T) {
	t.Parallel()
	var b telemetry.Build
	got := command(t, nil, "version", "--json")
	got.wants(t, exitOK)
	if err := json.Unmarshal([]byte(got.stdout), &b); err != nil || b.Version == "" || b.Commit == "" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("%+v (%v)", b, err)
	}
	if text := command(t, []string{"SECKILL_PATH_TTL=broken"}, "version"); text.code != exitOK || !strings.HasPrefix(text.stdout, "seckill "+b.Version) {
		t.Errorf("%+v", text)
	}
}

func TestVersionAndHelpAnswerToTheirUsualSpellings(t *testing.T) {
	t.Parallel()
	for spelling, usual := range map[string][]string{
		"--version":  {"version"},
		"help":       {"--help"},
		"help audit": {"audit", "--help"},
	} {
		want := command(t, nil, usual...)
		want.wants(t, exitOK)
		if got := command(t, nil, strings.Fields(spelling)...); got != want {
			t.Errorf("%s: %+v, want %+v", spelling, got, want)
		}
	}
}

func TestSchemaPrintIsTheWholeSchema(t *testing.T) {
	t.Parallel()
	got := command(t, nil, "schema", "print")
	got.wants(t, exitOK)
	for _, part := range []string{"placeOrder(", "type Subscription", "orderTaskStatus(", "enum ErrorCode"} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("%q is missing", part)
		}
	}
}

func TestSchemaPrintHasAPartForEachKindOfCaller(t *testing.T) {
	t.Parallel()
	for who, want := range map[string]struct{ has, lacks string }{
		"customer": {"placeOrder(", "approveSale("}, "staff": {"approveSale(", "placeOrder("}, "service": {"upsertSale(", "approveSale("},
	} {
		got := command(t, nil, "schema", "print", "--for", who)
		got.wants(t, exitOK)
		if !strings.Contains(got.stdout, want.has) || strings.Contains(got.stdout, want.lacks) {
			t.Errorf("the part for %s: %q %v, %q %v", who, want.has, strings.Contains(got.stdout, want.has), want.lacks, strings.Contains(got.stdout, want.lacks))
		}
	}
	command(t, nil, "schema", "print", "--for", "visitors").wants(t, exitUnfit)
}

func TestCompletionKnowsCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	for words, want := range map[string][]string{
		"":                 {"demo", "serve", "migrate", "--config", "--http-addr"},
		"migrate":          {"up", "status"},
		"serve":            {"--roles", "--database-url"},
		"serve --roles":    {"api", "worker", "scheduler"},
		"serve --profile":  {"production", "development"},
		"user create":      {"--account", "--role"},
		"completion":       {"bash", "zsh", "fish"},
		"audit --json":     {"--sale"},
		"config print":     {"--json"},
		"serve --unknown ": {"--roles"},
	} {
		got := command(t, nil, append([]string{"__complete"}, strings.Fields(words)...)...)
		got.wants(t, exitOK)
		lines := strings.Split(got.stdout, "\n")
		for _, w := range want {
			if !slices.Contains(lines, w) {
				t.Errorf("after %q %q is missing in %q", words, w, lines)
			}
		}
		if slices.Contains(lines, "__complete") {
			t.Errorf("after %q the inside shows", words)
		}
	}
}

func TestTheBashCompletionWorksInBash(t *testing.T) {
	t.Parallel()
	script := command(t, nil, "completion", "bash").stdout
	cmd := process(t, nil)
	shell := exec.CommandContext(t.Context(), "bash", "-c", script+`
COMP_WORDS=("$1" migrate st); COMP_CWORD=2; _seckill; echo "${COMPREPLY[@]}"`, "bash", cmd.Path) //nolint:gosec // our own script
	shell.Env = append(cmd.Env, "PATH=/usr/bin:/bin")
	out, err := shell.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "status" {
		t.Errorf("bash completes to %q (%v)", out, err)
	}
}
