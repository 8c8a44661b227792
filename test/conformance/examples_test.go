package conformance

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

const examples = "../../examples"

func TestExamplesBuyFromAProductionServer(t *testing.T) {
	t.Parallel()
	if err := packages(); err != nil {
		t.Fatalf("the examples need Node 20 or newer with npm: %v", err)
	}
	env := []string{
		"SECKILL_PROFILE=production", "SECKILL_DATABASE_URL=" + testenv.PostgresURL(t), "SECKILL_REDIS_URL=" + testenv.RedisServer(t).URL(),
		"SECKILL_JWT_KEY=examples-examples-examples-examples", "SECKILL_CAPTCHA_POOL=8", "SECKILL_POW_MAX=10000",
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	var seeded struct {
		Users []struct{ Account, Password string }
	}
	seed := exec.CommandContext(t.Context(), path, "seed", "--users", "3", "--stock", "8", "--yes-make-test-buyers", "--json")
	seed.Env = append(clean(os.Environ()), env...)
	if out, err := seed.Output(); err != nil || json.Unmarshal(out, &seeded) != nil || len(seeded.Users) != 3 {
		t.Fatalf("seed: %v\n%s", err, out)
	}
	url := start(t, []string{"serve"}, env...)

	dir := t.TempDir()
	installed, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(examples)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	bought := regexp.MustCompile(`(?m)^\w+ SUCCEEDED \S+$`)
	for i, command := range [][]string{
		{"node", filepath.Join(dir, "apollo.mjs")}, {"node", filepath.Join(dir, "urql.mjs")},
		{"go", "run", "seckill/examples/go", "-url", url, "-account", seeded.Users[2].Account, "-password", seeded.Users[2].Password},
	} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "SECKILL_URL="+url, "SECKILL_ACCOUNT="+seeded.Users[i].Account, "SECKILL_PASSWORD="+seeded.Users[i].Password)
		if out, err := cmd.CombinedOutput(); err != nil || !bought.Match(out) {
			t.Errorf("%s: %v\n%s", strings.Join(command[:2], " "), err, out)
		}
	}
}

func TestExamplesUseThePackagesUnderTest(t *testing.T) {
	t.Parallel()
	var used struct{ Dependencies map[string]string }
	var tested struct{ DevDependencies map[string]string }
	for file, into := range map[string]any{filepath.Join(examples, "package.json"): &used, "package.json": &tested} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used.Dependencies)) {
		if used.Dependencies[name] != tested.DevDependencies[name] {
			t.Errorf("%s: examples use %q, the suites %q", name, used.Dependencies[name], tested.DevDependencies[name])
		}
	}
}
