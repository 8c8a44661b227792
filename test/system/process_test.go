package system_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/internal/testenv"
)

// binary returns the path of the command: the file named by SECKILL_BINARY, else one that
// is built once for all tests and deleted by removeBinary.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "seckill-test-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "seckill")
	text, err := exec.CommandContext(context.Background(), "go", "build", "-o", out, "seckill/cmd/seckill").CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("build the command: %w\n%s", err, text)
	}
	return out, nil
})

// binaryVariable names an environment variable with the path of a built command.
const binaryVariable = "SECKILL_BINARY"

// built records whether binary was called.
var built sync.Once

func removeBinary() {
	unused := false
	built.Do(func() { unused = true })
	if unused || os.Getenv(binaryVariable) != "" {
		return
	}
	if path, err := binary(); path != "" && err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
}

// process is a `seckill serve` process on the services of a site.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	public string // address; "" without the API role
	admin  string
	ended  chan struct{} // closed once the process has ended
	mu     sync.Mutex
	lines  []string // guarded by mu; standard error
}

// settings returns the environment of a process on the services of the site. Variables in
// more override it.
func (s *site) settings(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), // excludes SECKILL_ variables of the developer
		"SECKILL_PROFILE=development", "SECKILL_LIMITS=off", "SECKILL_LOG_FORMAT=json",
		"SECKILL_DATABASE_URL=" + s.cfg.DatabaseURL.Reveal(), "SECKILL_REDIS_URL=" + s.cfg.RedisURL.Reveal(),
		"SECKILL_REDIS_PREFIX=" + s.cfg.RedisPrefix, "SECKILL_JWT_KEY=" + s.cfg.JWTKey.Reveal(),
		"SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0", "SECKILL_REQUEST_TIMEOUT=1m", "SECKILL_DRAIN_TIMEOUT=2m",
	}, more...)
}

// maxStarts bounds the starts of a process that ends because the services respond too
// slowly.
const maxStarts = 5

// launch starts a process and waits until it listens. It retries, as a supervisor would,
// when the start times out on slow services.
func (s *site) launch(roles string, more ...string) *process {
	s.t.Helper()
	for starts := 1; ; starts++ {
		p, listens := s.spawn(roles, more...)
		if listens {
			return p
		}
		if said := p.said(); starts == maxStarts || !strings.Contains(said, "i/o timeout") {
			s.t.Fatalf("process %s ended at once:\n%s", roles, said)
		}
	}
}

// spawn starts a process and waits until it listens or has ended. It is killed at the end
// of the test if it still runs.
func (s *site) spawn(roles string, more ...string) (p *process, listens bool) {
	s.t.Helper()
	built.Do(func() {})
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	command := []string{path, "serve", "--roles", roles}
	if s.files > 0 {
		command = append([]string{"bash", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, s.files)}, command...)
	}
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...) //nolint:gosec // the command under test
	cmd.Env, cmd.Dir = s.settings(more...), s.t.TempDir()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p = &process{t: s.t, cmd: cmd, ended: make(chan struct{})}
	listening := make(chan struct{})
	go p.follow(stderr, listening)
	s.t.Cleanup(p.kill)
	deadline := time.NewTimer(testenv.Wait)
	defer deadline.Stop()
	select {
	case <-listening:
		listens = true
	case <-p.ended:
	case <-deadline.C:
		s.t.Fatalf("process %s does not listen:\n%s", roles, p.said())
	}
	// A process that replaces another at the same address does not write s.url again:
	// other goroutines read it for their requests.
	if at := "http://" + p.public; p.public != "" && at != s.url {
		s.url = at
	}
	return p, listens
}

// follow reads standard error until the process ends, then reaps it.
func (p *process) follow(stderr io.Reader, listening chan<- struct{}) {
	defer close(p.ended)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	heard := false
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
		var line struct {
			Msg           string
			Public, Admin *struct {
				IP   string
				Port int
			}
		}
		if !heard && json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			if line.Public != nil {
				p.public = net.JoinHostPort(line.Public.IP, strconv.Itoa(line.Public.Port))
			}
			if line.Admin != nil {
				p.admin = net.JoinHostPort(line.Admin.IP, strconv.Itoa(line.Admin.Port))
			}
			heard = true
			close(listening)
		}
	}
	_ = p.cmd.Wait() // the result is in ProcessState
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// kill sends SIGKILL and waits for the end of the process.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// terminate sends SIGTERM, which starts the drain.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// left waits for the end of the process and returns the exit code.
func (p *process) left() int {
	p.t.Helper()
	deadline := time.NewTimer(testenv.Wait)
	defer deadline.Stop()
	select {
	case <-p.ended:
	case <-deadline.C:
		p.t.Fatalf("the process does not end:\n%s", p.said())
	}
	return p.cmd.ProcessState.ExitCode()
}

// metric reads one metric of the process, summed over its labels.
func (p *process) metric(name string) (float64, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+p.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Wait}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	sum, found := 0.0, false
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		series, value, ok := strings.Cut(lines.Text(), " ")
		if label, _, _ := strings.Cut(series, "{"); !ok || label != name {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, errors.New("no figure " + name)
	}
	return sum, lines.Err()
}

// throughProxy starts a proxy to the site's Redis and returns it with the setting that
// makes a process use it.
func (s *site) throughProxy() (*testenv.Proxy, string) {
	s.t.Helper()
	proxy := testenv.NewProxy(s.t, testenv.RedisAddr(s.t))
	return proxy, "SECKILL_REDIS_URL=" + testenv.RedisURLAt(proxy.Addr())
}

// ownPort returns the setting of a fixed admin address. The worker's consumer name is
// derived from it, so it stays the same across restarts.
func ownPort(t testing.TB) string { return "SECKILL_ADMIN_ADDR=" + testenv.ReserveAddr(t) }
