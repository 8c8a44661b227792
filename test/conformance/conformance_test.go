// Package conformance runs third-party suites (graphql-http's audit, graphql-ws,
// graphql-sse, urql, Apollo Client, relay-compiler, a schema linter) and the table of
// PROTOCOL.md against the real binary: the demo for the development profile, and a server
// on Postgres and Redis for production. The suites run under Node; package-lock.json pins
// their versions.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// binary returns the path of the command, which SECKILL_BINARY names or which is built once.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("SECKILL_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "seckill-conformance-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "seckill")
	out, err := exec.Command("go", "build", "-o", path, "seckill/cmd/seckill").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// packages installs the suites once, with the versions of package-lock.json.
var packages = sync.OnceValue(func() error {
	want, err := os.Stat("package-lock.json")
	if err != nil {
		return err
	}
	if have, err := os.Stat("node_modules/.package-lock.json"); err == nil && !have.ModTime().Before(want.ModTime()) {
		return nil
	}
	out, err := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline").CombinedOutput()
	if err != nil {
		return errors.New("npm ci: " + err.Error() + "\n" + string(out))
	}
	return nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil && path != os.Getenv("SECKILL_BINARY") {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func TestDevelopmentProfile(t *testing.T) {
	t.Parallel()
	url := start(t, []string{"demo"},
		"SECKILL_PROFILE=development", "SECKILL_LIMITS=off")
	suites(t, url, "development")
}

// This suite has its own server, because the other suites may run longer than its tokens of
// ten seconds live.
func TestTokensThatExpire(t *testing.T) {
	t.Parallel()
	url := start(t, []string{"demo"},
		"SECKILL_PROFILE=development", "SECKILL_LIMITS=off", "SECKILL_ACCESS_TOKEN_TTL=10s")
	suites(t, url, "expiry")
}

func TestProductionProfile(t *testing.T) {
	t.Parallel()
	env := []string{
		"SECKILL_PROFILE=production", "SECKILL_DATABASE_URL=" + testdb.PostgresURL(t), "SECKILL_REDIS_URL=" + testenv.RedisServer(t).URL(),
		"SECKILL_JWT_KEY=conformance-conformance-conformance-key",
	}
	url := start(t, []string{"serve"}, env...)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	create := exec.CommandContext(t.Context(), path, "user", "create", "--account", "admin@demo.example", "--role", "admin")
	create.Env, create.Stdin = append(clean(os.Environ()), env...), strings.NewReader("flash-sale-demo\n")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	suites(t, url, "production")
}

// start runs the command on free ports until the test ends, and returns its address once
// it is ready.
func start(t *testing.T, args []string, env ...string) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	out := &output{}
	cmd := exec.Command(path, append(args, "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json",
		"--request-timeout", "1m", "--drain-timeout", "2m")...) // a socket may stay that long before it signs in, for which a test waits
	cmd.Env = append(clean(os.Environ()), env...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil || t.Failed() {
			t.Logf("%s: %v\n%s", args[0], err, out.warnings())
		}
		if strings.Contains(out.String(), "m4rk3r") {
			t.Error("the log quotes what a client sent")
		}
	})
	var public, admin string
	testenv.Eventually(t, testenv.Wait, func() bool {
		public, admin = out.addresses()
		return admin != "" && ready(t, admin)
	}, "the server is ready")
	return "http://" + public
}

// output buffers the output of a process.
type output struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// warnings returns the lines of the log without those of the levels DEBUG and INFO.
func (o *output) warnings() string {
	var out strings.Builder
	for line := range strings.Lines(o.String()) {
		if !strings.Contains(line, `"level":"DEBUG"`) && !strings.Contains(line, `"level":"INFO"`) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// addresses returns the listener addresses from the log; "" until they are logged.
func (o *output) addresses() (public, admin string) {
	for line := range strings.Lines(o.String()) {
		var said struct {
			Msg           string
			Public, Admin net.TCPAddr
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "listening" {
			return said.Public.String(), said.Admin.String()
		}
	}
	return "", ""
}

func ready(t *testing.T, admin string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: testenv.Wait}).Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode == http.StatusOK
}

// clean removes the product's settings from an environment.
func clean(env []string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, "SECKILL_") {
			out = append(out, e)
		}
	}
	return out
}

func suites(t *testing.T, url, profile string) {
	t.Helper()
	if err := packages(); err != nil {
		t.Fatalf("the suites need Node 20 or newer with npm: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./run", url, profile)
	cmd.Env = append(clean(os.Environ()), "FORCE_COLOR=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", profile, err, out)
		return
	}
	if !strings.Contains(string(out), "skipped 0") {
		t.Errorf("%s: something was skipped", profile)
	}
	t.Logf("%s\n%s", profile, out)
}
