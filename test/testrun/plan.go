package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// logDir is the directory for the full output of failed steps and packages.
const logDir = ".services/test"

// installationTests is the package whose tests run whole installations. They are mostly idle, so more of
// them run in parallel, at the same time as all other steps.
const installationTests = "seckill/test/system"

// extraFaultPackages lists packages whose ordinary tests include faults: masters of Redis are
// killed, and all orders are refused.
var extraFaultPackages = []string{"seckill/internal/platform/redisconn", "seckill/internal/buy/order"}

// longest lists the packages that start first, so that none of them runs alone at the
// end.
var longest = []string{"seckill/test/conformance", "seckill/internal/platform/stream", "seckill/internal/pay/payment"}

// singleGoroutine lists the packages whose tests use a single goroutine: they read source files or run
// other programs. `make race` omits them, because the race detector can find nothing there.
var singleGoroutine = []string{
	"seckill/cmd/...", "seckill/internal/archtest", "seckill/internal/platform/config",
	"seckill/internal/platform/postgres/migratediff", "seckill/test/attack", "seckill/test/conformance",
	"seckill/test/deploy", "seckill/web",
}

// slow lists the packages that test-short omits: each takes a minute or more.
var slow = []string{installationTests, "seckill/test/conformance", "seckill/test/simulate",
	"seckill/internal/platform/stream", "seckill/cmd/seckill"}

// withoutRaceDetector lists packages that only compute: SQLite, password hashes and images. They
// run without the race detector, which makes them many times slower. Such a package must
// use no generic type with atomics (sync.Map): the linker may use its uninstrumented copy
// everywhere.
var withoutRaceDetector = []string{
	"modernc.org/sqlite/lib", "modernc.org/libc/...", "modernc.org/memory", "golang.org/x/crypto/argon2",
	"golang.org/x/crypto/blake2b", "github.com/golang/freetype/...", "image/...", "compress/...",
}

// plan lists the steps of one run: first the build, then lanes of steps that run side by
// side, because the tests of the shop wait for browsers while Go compiles.
type plan struct {
	build   step
	lanes   [][]step
	environ []string
	faults  string // file for the rows of `make faults`
	reruns  bool   // a failed test is run again alone, see rerun
}

// size returns the number of steps.
func (p *plan) size() int { return 1 + len(slices.Concat(p.lanes...)) }

// run runs all steps. After an interrupt it reports the rest as not run.
func (p *plan) run(ctx context.Context, r *report, bar *progress) {
	run := func(steps ...step) {
		for _, s := range steps {
			if ctx.Err() != nil {
				r.problem(s.name, "not run: interrupted", s.again)
				continue
			}
			s.run(ctx, p.environ, r, bar)
		}
	}
	run(p.build)
	var running sync.WaitGroup
	for _, lane := range p.lanes {
		running.Go(func() { run(lane...) })
	}
	running.Wait()
}

// planOf returns the steps of a mode. The first step builds the binary for all tests that
// start processes.
func planOf(ctx context.Context, mode, binary string) (plan, error) {
	packages, err := list(ctx, "./...")
	if err != nil {
		return plan{}, err
	}
	p := plan{environ: append(os.Environ(), "SECKILL_BINARY="+binary, "SECKILL_TESTRUN=yes", "RAPID_NOFAILFILE=true"),
		faults: filepath.Join(filepath.Dir(binary), "faults.jsonl")}
	if os.Getenv("GOGC") == "" {
		p.environ = append(p.environ, "GOGC=300") // uses more memory and about a sixth less CPU time in compiler and tests
	}
	p.build = step{name: "build", command: []string{"go", "build", "-o", binary, "./cmd/seckill"},
		again: "go build ./cmd/seckill"}
	p.reruns = mode == "all" || mode == "e2e"
	switch mode {
	case "all":
		p.lanes = [][]step{
			{goStep("sites", []string{installationTests}, []string{"-timeout", "30m", "-parallel", "4"})},
			{goStep("go", without(packages, []string{installationTests}), []string{"-timeout", "30m", "-p", "3"})},
			{webStep("types", plainOutput), webStep("unit", vitestOutput), webStep("build", plainOutput),
				webStep("e2e", vitestOutput)},
		}
		p.environ = append(p.environ, "SECKILL_JOURNEYS=short")
	case "e2e":
		p.lanes = [][]step{{webStep("e2e", vitestOutput)}}
	case "race":
		flags := append(raceFlags(ctx), "-timeout", "60m")
		p.lanes = [][]step{{goStep("go -race", without(packages, append(singleGoroutine, installationTests)),
			append(flags, "-p", "3")), goStep("sites -race", []string{installationTests}, append(flags, "-parallel", "4"))}}
	case "short":
		p.lanes = [][]step{{goStep("go", without(packages, slow), []string{"-timeout", "10m"})},
			{webStep("types", plainOutput), webStep("unit", vitestOutput)}}
	case "faults":
		p.environ = append(p.environ, faultsVariable+"="+p.faults)
		found, err := list(ctx, "-tags", "faults", "-f",
			"{{range .TestGoFiles}}{{$.ImportPath}} {{.}}\n{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{.}}\n{{end}}",
			"./...")
		if err != nil {
			return p, err
		}
		p.lanes = [][]step{{goStep("faults", append(faultPackages(found), extraFaultPackages...),
			append(raceFlags(ctx), "-tags", "faults", "-run", faultTests, "-timeout", "60m", "-p", "1"))}}
	default:
		return p, fmt.Errorf("unknown mode %q; want all, short, race, e2e or faults", mode)
	}
	return p, nil
}

// goStep tests packages. It skips vet, which is part of `make check`, and debug
// information, which slows down linking.
func goStep(name string, packages, flags []string) step {
	command := slices.Concat([]string{"go", "test", "-json", "-vet=off", "-ldflags=-w"}, flags, packages)
	return step{name: name, command: command, read: goOutput, packages: len(packages), again: "go test " +
		strings.Join(packages[:min(1, len(packages))], "")}
}

// webStep runs one part of scripts/test-web.
func webStep(part string, read reader) step {
	return step{name: "web " + part, command: []string{"scripts/test-web", part}, read: read, again: "scripts/test-web " +
		part}
}

// list returns what `go list` prints, by line.
func list(ctx context.Context, args ...string) ([]string, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}

// without returns the packages that match no pattern, the longest first. A pattern that
// ends in /... matches a package and all below it.
func without(packages, patterns []string) []string {
	left := slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			tree, all := strings.CutSuffix(pattern, "/...")
			return p == tree || all && strings.HasPrefix(p, tree+"/")
		})
	})
	slices.SortStableFunc(left, func(a, b string) int { return rank(a) - rank(b) })
	return left
}

func rank(p string) int {
	if i := slices.Index(longest, p); i >= 0 {
		return i
	}
	return len(longest)
}

// faultPackages returns the packages with files under the faults build tag.
func faultPackages(found []string) []string {
	var packages []string
	for _, line := range found {
		if name, file, ok := strings.Cut(line, " "); ok && strings.HasSuffix(file, "faults_test.go") &&
			!slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	return packages
}

// raceFlags returns the flags of the race detector, none without a C compiler, which it
// requires.
func raceFlags(ctx context.Context) []string {
	text, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	cgo, compiler, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if _, missing := exec.LookPath(compiler); err != nil || cgo != "1" || missing != nil {
		fmt.Fprintln(os.Stderr, "no C compiler here: the tests run without the race detector")
		return nil
	}
	flags := []string{"-race"}
	for _, p := range withoutRaceDetector {
		flags = append(flags, "-gcflags="+p+"=-race=false")
	}
	return flags
}

// duration is how long a step, a package or a test took.
type duration struct {
	kind    string // step, processor (time of a step), package or test
	name    string
	seconds float64
}

// took records a duration. Durations of packages and tests include waits for those that
// run at the same time.
func (r *report) took(kind, name string, seconds float64) {
	r.durations = append(r.durations, duration{kind, strings.TrimPrefix(name, module), seconds})
}

// stepEnded records how long a step took, and the processor time of its processes without
// that of the services. It locks the report.
func (r *report) stepEnded(name string, took time.Duration, ended *os.ProcessState) {
	r.Lock()
	defer r.Unlock()
	r.took("step", name, took.Seconds())
	if ended != nil {
		r.took("processor", name, (ended.UserTime() + ended.SystemTime()).Seconds())
	}
}

// writeTimes writes the durations to a file, by kind and the longest first, and returns
// its name, "" on an error.
func (r *report) writeTimes() string {
	slices.SortStableFunc(r.durations, func(a, b duration) int {
		return cmp.Or(cmp.Compare(rankOf(a.kind), rankOf(b.kind)), cmp.Compare(b.seconds, a.seconds))
	})
	var text strings.Builder
	for _, d := range r.durations {
		fmt.Fprintf(&text, "%s\t%.1f\t%s\n", d.kind, d.seconds, d.name)
	}
	name := filepath.Join(r.dir, "times.tsv")
	if os.MkdirAll(r.dir, 0o750) != nil || os.WriteFile(name, []byte(text.String()), 0o600) != nil {
		return ""
	}
	return name
}

func rankOf(kind string) int {
	return slices.Index([]string{"step", "processor", "package", "test"}, kind)
}
