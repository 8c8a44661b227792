package telemetry

import (
	"runtime/debug"
	"strings"
	"time"
)

// Build describes the binary.
type Build struct {
	Version  string    `json:"version"`
	Commit   string    `json:"commit"` // "unknown" when built outside version control
	Modified bool      `json:"modified"`
	Time     time.Time `json:"time,omitzero"` // of the commit
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
}

// version and commit are set by the linker for release builds:
// -ldflags "-X seckill/internal/platform/telemetry.version=1.2.3 -X seckill/internal/platform/telemetry.commit=…".
var version, commit string

// ReadBuild returns the values set by the linker, or else those set by the Go tool.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, version, commit)
}

func buildOf(info *debug.BuildInfo, version, commit string) Build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := Build{
		Version: info.Main.Version, Commit: settings["vcs.revision"], Modified: settings["vcs.modified"] == "true",
		Go: info.GoVersion, Platform: settings["GOOS"] + "/" + settings["GOARCH"],
	}
	b.Time, _ = time.Parse(time.RFC3339, settings["vcs.time"]) // zero if unknown
	if version != "" {
		b.Version = strings.TrimPrefix(version, "v")
	}
	if commit != "" {
		b.Commit, b.Modified = commit, false
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}
