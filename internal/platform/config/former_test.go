package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constants are the settings of the previous release that are constants now.
var constants = []string{
	"captcha-pool", "captcha-ttl", "claim-idle", "drain-delay", "load-slot", "load-slots", "order-batch", "preload-every",
	"push-services", "user-sockets",
}

// moved maps the other old names to the new ones.
var moved = map[string]string{}

// former returns the settings of a command line, and its lines about old names.
func former(t *testing.T, args []string, lookup func(string) (string, bool)) ([]Setting, []string) {
	t.Helper()
	source := NewSource(lookup)
	_, ctx, err := parse(args, Options(source)...)
	if err != nil || len(source.Problems()) > 0 {
		t.Fatal(err, source.Problems())
	}
	return source.Settings(ctx), source.Former(ctx)
}

func TestFormerSettingsAreKnown(t *testing.T) {
	t.Parallel()
	_, ctx, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	gotMoved, gotConstants := map[string]string{}, []string{}
	for _, flag := range ctx.Model.Flags {
		for _, alias := range flag.Aliases {
			gotMoved[alias] = flag.Name
		}
		if constant(flag) != "" {
			gotConstants = append(gotConstants, flag.Name)
		}
	}
	if diff := cmp.Diff(moved, gotMoved); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(constants, gotConstants); diff != "" {
		t.Errorf("constants (-want +got):\n%s", diff)
	}
}

func TestFormerConstantsAreIgnoredAndReportedOnce(t *testing.T) {
	t.Parallel()
	defaults, _ := former(t, nil, env())
	for _, old := range constants {
		file := write(t, fileKey(old)+" = 7\n")
		for used, in := range map[string]struct {
			args   []string
			lookup func(string) (string, bool)
		}{
			EnvName(old):               {nil, env(EnvName(old), "7")},
			file + ": " + fileKey(old): {[]string{"--config", file}, env()},
			"--" + old:                 {[]string{"--" + old, "7"}, env()},
		} {
			settings, lines := former(t, in.args, in.lookup)
			if len(lines) != 1 || !strings.HasPrefix(lines[0], used+" is no longer a setting and is ignored: ") {
				t.Errorf("%s: %q", used, lines)
			}
			if diff := cmp.Diff(defaults[1:], settings[1:]); diff != "" {
				t.Errorf("%s changes the settings (-default +got):\n%s", used, diff)
			}
		}
		if got := UnknownVariables([]string{EnvName(old) + "=7"}); got != nil {
			t.Errorf("unknown: %q", got)
		}
	}
}
