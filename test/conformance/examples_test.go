package conformance

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

const examples = "../../examples"

// clients are the commands that buy, each with an account of its own.
const clients = 6

func TestClientsBuyFromAProductionServer(t *testing.T) {
	t.Parallel()
	if err := packages(); err != nil {
		t.Fatalf("the examples need Node 20 or newer with npm: %v", err)
	}
	env := []string{
		"SECKILL_PROFILE=production", "SECKILL_DATABASE_URL=" + testdb.PostgresURL(t), "SECKILL_REDIS_URL=" + testenv.RedisServer(t).URL(),
		"SECKILL_JWT_KEY=examples-examples-examples-examples", "SECKILL_POW_MAX=10000",
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	var seeded struct {
		Users []struct{ Account, Password string }
	}
	seed := exec.CommandContext(t.Context(), path, "seed", "--users", strconv.Itoa(clients), "--stock", "8", "--yes-make-test-buyers", "--json")
	seed.Env = append(clean(os.Environ()), env...)
	if out, err := seed.Output(); err != nil || json.Unmarshal(out, &seeded) != nil || len(seeded.Users) != clients {
		t.Fatalf("seed: %v\n%s", err, out)
	}
	url := start(t, []string{"serve"}, env...)

	dir := installExamples(t, path)
	bought := regexp.MustCompile(`(?m)^\w+ SUCCEEDED \S+$`)
	last := seeded.Users[clients-1]
	for i, client := range []struct {
		wants   *regexp.Regexp
		command []string
	}{
		{bought, []string{"node", filepath.Join(dir, "apollo.mjs")}},
		{bought, []string{"node", filepath.Join(dir, "urql.mjs")}},
		{bought, []string{"node", filepath.Join(dir, "relay.mjs")}},
		{bought, []string{"node", filepath.Join(dir, "fetch.mjs")}},
		{regexp.MustCompile(`(?m)^bought\norder \S+ is paid`), []string{"node", installClient(t)}},
		{bought, []string{"go", "run", "seckill/examples/go", "-url", url, "-account", last.Account, "-password", last.Password}},
	} {
		cmd := exec.CommandContext(t.Context(), client.command[0], client.command[1:]...)
		cmd.Env = append(os.Environ(), "SECKILL_URL="+url, "SECKILL_ACCOUNT="+seeded.Users[i].Account, "SECKILL_PASSWORD="+seeded.Users[i].Password)
		if out, err := cmd.CombinedOutput(); err != nil || !client.wants.Match(out) {
			t.Errorf("%s: %v\n%s", strings.Join(client.command[:2], " "), err, out)
		}
	}
}

// TestConnectorsMakeEachPaidOrderOnce replays answers of the APIs of other shops.
func TestConnectorsMakeEachPaidOrderOnce(t *testing.T) {
	t.Parallel()
	run(t, filepath.Join(examples, "connectors"), "node", "--test", "connectors.test.mjs")
}

// installExamples copies the examples to a folder with their packages, and compiles the
// operations of Relay.
func installExamples(t *testing.T, binary string) string {
	t.Helper()
	dir := t.TempDir()
	installed, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(examples)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	schema, err := exec.CommandContext(t.Context(), binary, "schema", "print").Output()
	if err != nil {
		t.Fatalf("print the schema: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "schema.graphql"), schema, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "node", filepath.Join(installed, "relay-compiler/cli.js"))
	return dir
}

// installClient packs @seckill/client, installs it in a clean folder, and returns the
// program of its README there.
func installClient(t *testing.T) string {
	t.Helper()
	web, err := filepath.Abs("../../web")
	if err != nil {
		t.Fatal(err)
	}
	run(t, web, "../scripts/test-web", "modules")
	dir := t.TempDir()
	run(t, filepath.Join(web, "client"), "npm", "pack", "--pack-destination", dir)
	packed, err := filepath.Glob(filepath.Join(dir, "seckill-client-*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("packed %v, %v", packed, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module", "private": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "npm", "install", "--no-audit", "--no-fund", "--prefer-offline", packed[0])
	readme, err := os.ReadFile(filepath.Join(web, "client/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "```js\n")
	program, _, _ = strings.Cut(program, "```")
	if lines := strings.Count(program, "\n"); lines == 0 || lines > 60 {
		t.Errorf("the purchase of the README has %d lines", lines)
	}
	file := filepath.Join(dir, "buy.js")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	checkTypes(t, web, dir)
	return file
}

// checkTypes compiles a program in TypeScript against the installed package: its types
// need nothing else.
func checkTypes(t *testing.T, web, dir string) {
	t.Helper()
	const program = `import { buy, createClient, documents, type Sale } from '@seckill/client';
const client = createClient({ url: 'https://shop.example/graphql' });
export async function first(): Promise<Sale['title'] | undefined> {
  const { sale } = await client.request(documents.SaleBySlug, { slug: 'one' });
  const task = await buy(client, { saleId: 'sal_1', itemId: 'itm_1' }, (attempt) => { if (attempt.step === 'refused') attempt.failure.code satisfies string; });
  task.status satisfies 'FAILED' | 'SUBMITTED' | 'SUCCEEDED';
  // @ts-expect-error: a document has types
  await client.request(documents.SaleBySlug, { slug: 1 });
  return sale?.title;
}
`
	if err := os.WriteFile(filepath.Join(dir, "types.ts"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "node", filepath.Join(web, "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--target", "es2023",
		"--lib", "es2023,dom", "--module", "nodenext", "--moduleResolution", "nodenext", "types.ts")
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
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
