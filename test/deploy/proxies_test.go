//go:build ship

package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/internal/testenv"
)

// host is the server name in the configurations.
const host = "shop.example.com"

// certificate writes a certificate for host, its key, and both in one file; the
// client trusts it.
func certificate(t *testing.T, dir string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, text := range map[string][]byte{"shop.crt": public, "shop.key": secret, "shop.pem": append(append([]byte{}, public...), secret...)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// configured copies a file of deploy/ with replacements. Each replaced text must exist.
func configured(t testing.TB, name, into string, pairs ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deployment, name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q", name, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	path := filepath.Join(into, filepath.Base(name))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startProgram runs a program until the test ends; ready reports whether it serves. If
// another process has taken the free address, it is started again with a new one.
func startProgram(t testing.TB, start func(address string) *exec.Cmd, ready func(address string) bool) (address string) {
	t.Helper()
	for range 5 {
		address = testenv.ReserveAddr(t)
		cmd := start(address)
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		stop := func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
			<-ended
			log.Close()
		}
		dead := false
		testenv.Eventually(t, testenv.Wait, func() bool {
			select {
			case <-ended:
				dead = true
			default:
			}
			return dead || ready(address)
		}, cmd.Path+" serves")
		if !dead {
			t.Cleanup(stop)
			return address
		}
		text, _ := os.ReadFile(log.Name())
		t.Logf("%s ended at once:\n%s", cmd.Path, text)
	}
	t.Fatal("it does not start")
	return ""
}

// proxyReady returns a function that reports whether a TLS proxy at an address forwards to
// the server.
func proxyReady(client *http.Client) func(string) bool {
	return func(address string) bool {
		response, err := client.Get("https://" + address + "/")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}

// startNginx runs deploy/nginx in front of a server until the test ends.
func startNginx(t *testing.T, client *http.Client, dir, upstream string) (address string) {
	t.Helper()
	return startProgram(t, func(address string) *exec.Cmd {
		site := configured(t, "nginx/seckill.conf", dir, "127.0.0.1:8080", upstream, "listen 443", "listen "+address, "/etc/nginx/tls", dir)
		main := filepath.Join(dir, "nginx.conf")
		text := fmt.Sprintf("pid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\ninclude %s;\n}\n", dir, site)
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			text = strings.Replace(text, "http {\n", fmt.Sprintf("http {\n%s_temp_path %s/%s;\n", kind, dir, kind), 1)
		}
		if err := os.WriteFile(main, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command("nginx", "-e", "stderr", "-p", dir, "-c", main, "-g", "daemon off;")
	}, proxyReady(client))
}

// startHAProxy runs deploy/haproxy in front of a server until the test ends.
func startHAProxy(t *testing.T, client *http.Client, dir, upstream, admin string) (address string) {
	t.Helper()
	_, adminPort, err := net.SplitHostPort(admin)
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, func(address string) *exec.Cmd {
		config := configured(t, "haproxy/haproxy.cfg", dir, "127.0.0.1:8080", upstream, "bind :443", "bind "+address,
			"/etc/haproxy/tls", dir, "port 9090", "port "+adminPort, "maxconn 100000", "maxconn 1000")
		return exec.Command("haproxy", "-db", "-f", config)
	}, proxyReady(client))
}

func TestNginxPassesAPurchase(t *testing.T) {
	t.Parallel()
	s, dir := openShop(t), t.TempDir()
	client := certificate(t, dir)
	s.buysThrough("https://"+startNginx(t, client, dir, s.public), client)
}

func TestHAProxyPassesAPurchase(t *testing.T) {
	t.Parallel()
	s, dir := openShop(t), t.TempDir()
	client := certificate(t, dir)
	s.buysThrough("https://"+startHAProxy(t, client, dir, s.public, s.admin), client)
}

// A client that chooses its own address would have as many rate limits as it likes.
func TestProxiesReplaceTheClientsAddress(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %v %v", r.Host, r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Proto"])
	}))
	t.Cleanup(backend.Close)
	upstream := strings.TrimPrefix(backend.URL, "http://")
	for name, start := range map[string]func(client *http.Client, dir string) string{
		"nginx":   func(client *http.Client, dir string) string { return startNginx(t, client, dir, upstream) },
		"haproxy": func(client *http.Client, dir string) string { return startHAProxy(t, client, dir, upstream, upstream) },
	} {
		dir := t.TempDir()
		client := certificate(t, dir)
		address := start(client, dir)
		for _, path := range []string{"/", "/graphql", "/media/x.png"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("X-Forwarded-For", "198.51.100.7")
			r.Header.Set("X-Forwarded-Proto", "http")
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if want := host + " [127.0.0.1] [https]"; err != nil || string(got) != want {
				t.Errorf("%s, %s: the server gets %q, %v, want %q", name, path, got, err, want)
			}
		}
	}
}
