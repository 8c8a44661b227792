//go:build ship

package deploy

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// run runs a program and returns its output without the last line break.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// buildah builds the image from the finished binary; its root is then mounted read-only
// and the server in it runs as the image's user, without a container engine.
func TestTheImageServesReadOnlyAndWithoutRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	context := filepath.Join(dir, "context")
	platform := filepath.Join(context, "linux", runtime.GOARCH)
	if err := os.MkdirAll(platform, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "cp", binary(t), filepath.Join(platform, "seckill"))
	run(t, "cp", "/etc/ssl/certs/ca-certificates.crt", context)
	buildah := func(args ...string) string {
		t.Helper()
		return run(t, "buildah", append([]string{"--storage-driver", "vfs", "--root", dir + "/store", "--runroot", dir + "/run"}, args...)...)
	}
	buildah("bud", "--quiet", "--isolation", "chroot", "-f", filepath.Join(deployment, "Dockerfile.release"), "-t", "seckill:ship", context)
	var image struct {
		OCIv1 struct {
			Config struct {
				User            string
				Cmd, Entrypoint []string
				ExposedPorts    map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(buildah("inspect", "--type", "image", "seckill:ship")), &image); err != nil {
		t.Fatal(err)
	}
	config := image.OCIv1.Config
	if config.User != "65532:65532" || strings.Join(append(config.Entrypoint, config.Cmd...), " ") != "/seckill serve" || len(config.ExposedPorts) != 2 {
		t.Errorf("the image's configuration is %+v", config)
	}
	container := buildah("from", "--quiet", "seckill:ship")
	root := buildah("mount", container)
	t.Cleanup(func() { _ = exec.Command("rm", "-rf", dir+"/store", dir+"/run").Run() })

	s := &shop{t: t, environ: settings(t)}
	s.seed()
	s.serve(exec.Command("unshare", "--mount", "sh", "-c",
		`mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec chroot --userspec=65532:65532 "$0" /seckill serve`, root))
	s.buysThrough("http://"+s.public, http.DefaultClient)
}

// The image built from source differs from the release image only in the origin of its
// files.
func TestBothImagesAreConfiguredAlike(t *testing.T) {
	t.Parallel()
	stage := func(name string) (lines []string) {
		raw, err := os.ReadFile(filepath.Join(deployment, name))
		if err != nil {
			t.Fatal(err)
		}
		_, last, found := strings.Cut(string(raw), "FROM scratch\n")
		if !found {
			t.Fatalf("%s is not built from scratch", name)
		}
		for line := range strings.Lines(last) {
			if !strings.HasPrefix(line, "COPY ") && !strings.HasPrefix(line, "ARG ") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if source, release := strings.Join(stage("Dockerfile"), ""), strings.Join(stage("Dockerfile.release"), ""); source != release {
		t.Errorf("Dockerfile ends in\n%s\nDockerfile.release in\n%s", source, release)
	}
}
