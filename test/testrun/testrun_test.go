package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// files is a module with one failure of each kind.
var files = map[string]string{
	"go.mod":              "module seckill\n\ngo 1.24\n",
	"good/good_test.go":   "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { println(\"noise of a good test\") }\n",
	"bad/bad_test.go":     "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) {\n\tt.Run(\"a case\", func(t *testing.T) { t.Error(\"broken promise\") })\n}\n",
	"crash/crash_test.go": "package crash\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestCrash(t *testing.T) { os.Exit(3) }\n",
	"hang/hang_test.go":   "package hang\n\nimport \"testing\"\n\nfunc TestHang(t *testing.T) { t.Parallel(); wait() }\n\nfunc TestEnds(t *testing.T) { t.Parallel() }\n\nfunc wait() { select {} }\n",
	"wrong/wrong_test.go": "package wrong\n\nimport \"testing\"\n\nfunc TestWrong(t *testing.T) { undefined() }\n",
}

func TestOneSummaryNamesEveryFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goTests := goStep("go", []string{"./..."}, []string{"-timeout", "30s"})
	goTests.command = append([]string{"go", "-C", dir}, goTests.command[1:]...)
	web := webStep("e2e", vitestOutput)
	web.command = []string{"echo", "noise of the browser\n" +
		webPrefix + `{"file":"web/e2e/buy.test.ts","name":"a buyer pays","state":"passed"}` + "\n" +
		webPrefix + `{"file":"web/e2e/pay.test.ts","name":"it's late","state":"failed","at":"web/e2e/pay.test.ts:7","error":"no button"}`}
	types := webStep("types", plainOutput)
	types.command = []string{"sh", "-c", "echo 'src/app.tsx:3:1 wrong type'; exit 2"}

	log, err := os.Create(filepath.Join(t.TempDir(), "progress"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, bar := newReport(filepath.Join(dir, "logs")), newProgress(log, 4)
	p := plan{build: step{name: "build", command: []string{"true"}}, lanes: [][]step{{goTests}, {web, types}}, environ: append(os.Environ(), "GOFLAGS=-mod=mod")}
	p.run(t.Context(), r, bar)
	bar.close()
	if text, err := os.ReadFile(log.Name()); err != nil ||
		!strings.Contains(string(text), "failed: seckill/bad TestBad/a_case bad/bad_test.go:6\n") {
		t.Errorf("progress %s, %v", text, err)
	}
	var out bytes.Buffer
	r.print(&out, 90*time.Second)
	for _, want := range []string{
		"FAILED: 6 failures", "1m30s", "broken promise", "no button",
		"bad TestBad/a_case\n    at   bad/bad_test.go:6\n    run  go test -race -count=1 -run '^TestBad$/^a_case$' ./bad\n    log  " + filepath.Join(dir, "logs", "bad.log"),
		"  crash TestCrash\n", "  hang TestHang\n", "panic: test timed out after 30s\n", "\nseckill/hang.wait(", "  wrong\n    at   wrong/wrong_test.go:5\n    run  go test -race ./wrong",
		"web/e2e/pay.test.ts it's late\n    at   web/e2e/pay.test.ts:7\n    run  scripts/test-web e2e e2e/pay.test.ts -t 'it'\\''s late'",
		"  web types\n    at   src/app.tsx:3\n    run  scripts/test-web types\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
	times, err := os.ReadFile(r.writeTimes())
	if err != nil || !strings.HasPrefix(string(times), "step\t") || !strings.Contains(string(times), "web/e2e/buy.test.ts a buyer pays") || !strings.Contains(string(times), "\ntest\t0.0\tbad TestBad\n") {
		t.Errorf("times %s %v", times, err)
	}
	if !r.failed() || strings.Contains(out.String(), "noise") {
		t.Errorf("failed %t, with the noise of what passed:\n%s", r.failed(), out.String())
	}
}

// onceAndAlways is a package with a test that fails the first time and one that always fails.
const onceAndAlways = `package once

import (
	"os"
	"testing"
)

func TestOnce(t *testing.T) {
	t.Run("a case", func(t *testing.T) {
		if os.Mkdir("begun", 0o700) == nil {
			t.Error("the first time")
		}
	})
}

func TestAlways(t *testing.T) { t.Error("always") }
`

func TestATestThatPassesAloneIsFlaky(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "once"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": files["go.mod"], "once/once_test.go": onceAndAlways} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "progress"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, bar := newReport(filepath.Join(dir, "logs")), newProgress(log, 1)
	inDir := func(command []string) []string { return append([]string{"go", "-C", dir}, command[1:]...) }
	tests := goStep("go", []string{"./once"}, nil)
	tests.command = inDir(tests.command)
	p := plan{build: tests, environ: append(os.Environ(), "GOFLAGS=-mod=mod"), reruns: true}
	p.run(t.Context(), r, bar)
	for i := range r.failures {
		r.failures[i].alone = inDir(r.failures[i].alone)
	}
	p.rerun(t.Context(), r, bar)
	bar.close()
	summary := func() string {
		var out bytes.Buffer
		r.print(&out, time.Second)
		return out.String()
	}
	if text := summary(); !r.failed() || !strings.Contains(text, "FAILED: 2 failures in 3 tests") ||
		!strings.Contains(text, "  once TestOnce/a_case (flaky)\n") || !strings.Contains(text, "  once TestAlways\n") {
		t.Errorf("failed %t:\n%s", r.failed(), text)
	}
	r.failures = slices.DeleteFunc(r.failures, func(f failure) bool { return f.test == "TestAlways" })
	if text := summary(); r.failed() || !strings.Contains(text, "PASSED 3 tests in 1s; FLAKY: 1 failed") || !strings.Contains(text, "the first time") {
		t.Errorf("failed %t:\n%s", r.failed(), text)
	}
}

func TestARunThatPassesSaysSo(t *testing.T) {
	t.Parallel()
	r := newReport(t.TempDir())
	r.testEnded(event{Action: "pass", Package: "seckill/good", Test: "TestGood"})
	r.packageEnded(event{Action: "pass", Package: "seckill/good"})
	var out bytes.Buffer
	r.print(&out, time.Second)
	if r.failed() || out.String() != "PASSED 1 tests in 1s\n" {
		t.Errorf("failed %t: %q", r.failed(), out.String())
	}
}

func TestPackagesOfAPlan(t *testing.T) {
	t.Parallel()
	all := []string{"seckill/graph", "seckill/test/system", "seckill/internal/stand", "seckill/internal/stand/low", "seckill/internal/platform/stream"}
	got := strings.Join(without(all, []string{"seckill/test/system", "seckill/internal/stand/..."}), " ")
	if want := "seckill/internal/platform/stream seckill/graph"; got != want {
		t.Errorf("packages %q, want %q", got, want)
	}
	if got := faultPackages([]string{"seckill/a x_test.go", "seckill/b kill_faults_test.go", "seckill/b faults_test.go"}); len(got) != 1 || got[0] != "seckill/b" {
		t.Errorf("packages with fault tests %q", got)
	}
}
