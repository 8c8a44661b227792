package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"seckill/internal/platform/config"
)

const areaConfig = "config"

func (r *report) settings(d Deps) {
	before := len(r.findings)
	fit := d.Fit
	if fit == nil {
		fit = func() error { return d.Config.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys) }
	}
	if err := fit(); err != nil {
		if problems, ok := errors.AsType[config.Problems](err); ok {
			for _, p := range problems {
				r.add(areaConfig, Error, p)
			}
		} else {
			r.add(areaConfig, Error, err.Error())
		}
	}
	for _, name := range config.UnknownVariables(d.Environ) {
		r.add(areaConfig, Warning, name+" is no setting: misspelt? `seckill config print` lists them all")
	}
	for _, line := range d.Former {
		r.add(areaConfig, Warning, line)
	}
	r.secretsInFile(d.Settings)
	if host, _, err := net.SplitHostPort(d.Config.AdminAddr); err == nil && d.Config.Production() && !loopback(host) {
		r.add(areaConfig, Warning, fmt.Sprintf(
			"the admin listener is on %s: it shows profiles and figures to every client that reaches it; bind it to 127.0.0.1 or a private address", d.Config.AdminAddr))
	}
	r.exposure(d.Config)
	if strings.HasPrefix(strings.ToLower(d.Config.PublicURL), "https://") && len(d.Config.TrustedProxies) == 0 {
		r.add(areaConfig, Warning, "SECKILL_PUBLIC_URL is https, which a proxy in front speaks, but SECKILL_TRUSTED_PROXIES is not set: "+
			"every client then has the proxy's address, which limits and the share of sockets without signing in count by; set it to the proxy's address")
	}
	r.files(d)
	if !d.Config.PaymentsOn() {
		r.add(areaConfig, Warning, "no payment provider: orders cannot be paid, and expire; for a trial set SECKILL_SANDBOX=trial, whose bank approves every payment")
	}
	if len(r.findings) == before {
		r.add(areaConfig, OK, fmt.Sprintf("%d settings, profile %s", len(d.Settings), d.Config.Profile))
	}
}

// files warns when a process may open too few files for its sockets.
func (r *report) files(d Deps) {
	files := d.Files
	if files == 0 {
		var err error
		if files, err = config.OpenFiles(); err != nil {
			r.add(areaConfig, Warning, err.Error())
			return
		}
	}
	if _, sockets := config.Connections(files); sockets < d.Config.MaxSockets {
		r.add(areaConfig, Warning, fmt.Sprintf(
			"SECKILL_MAX_SOCKETS is %d, but %d open files allow %d sockets; raise the limit of the service "+
				"(LimitNOFILE= of systemd, --ulimit nofile= of a container), or lower the setting", d.Config.MaxSockets, files,
			sockets))
	}
}

// A signing key of 32 random bytes in any encoding has more than weakKey distinct bytes;
// fewer were probably typed or repeated.
const weakKey = 11

// exposure warns of settings that expose a production server to attackers.
func (r *report) exposure(cfg *config.Config) {
	if !cfg.Production() {
		return
	}
	if cfg.PublicURL == "" {
		r.add(areaConfig, Warning, "SECKILL_PUBLIC_URL is empty: cookies are not marked Secure behind a proxy that ends TLS, and payment pages have no address to return to")
	}
	if key := cfg.JWTKey.Reveal(); len(key) > 0 && predictable(key) {
		r.add(areaConfig, Warning, "SECKILL_JWT_KEY is predictable: it repeats itself, counts up, or has words of an example. "+
			"Draw one at random, for example with `openssl rand -hex 32`")
	}
}

// placeholders are words of keys that were copied from an example or typed.
var placeholders = []string{"secret", "password", "passw0rd", "changeme", "change-me", "change_me", "example",
	"seckill", "default", "qwerty", "letmein", "development"}

// predictable reports whether a signing key was probably typed, not drawn: it has few
// distinct bytes, counts up or follows a keyboard for two thirds, repeats itself, or has a
// word of an example. Random keys are reported with a chance below one in a million.
func predictable(key string) bool {
	seen, steps := map[byte]bool{}, 0
	for i := range len(key) {
		seen[key[i]] = true
		if i > 0 && (key[i]-key[i-1]+1 <= 2 || onKeyboard(key[i-1], key[i])) { // -1, 0 or 1
			steps++
		}
	}
	if len(seen) <= weakKey || 3*steps >= 2*len(key) {
		return true
	}
	for period := 1; period <= len(key)/2; period++ {
		if key[period:] == key[:len(key)-period] {
			return true
		}
	}
	lower := strings.ToLower(key)
	return slices.ContainsFunc(placeholders, func(word string) bool { return strings.Contains(lower, word) })
}

// onKeyboard reports whether two letters are neighbours in a row of a keyboard, as in
// "qwertyuiop".
func onKeyboard(a, b byte) bool {
	const rows = "qwertyuiop asdfghjkl zxcvbnm QWERTYUIOP ASDFGHJKL ZXCVBNM"
	return strings.Contains(rows, string([]byte{a, b}))
}

// secretsInFile warns of a file with secrets that other users can read.
func (r *report) secretsInFile(settings []config.Setting) {
	for _, s := range settings {
		fromFile := s.Origin != config.OriginDefault && s.Origin != config.OriginFlag &&
			!strings.HasPrefix(string(s.Origin), config.EnvPrefix)
		if !s.Secret || !fromFile {
			continue
		}
		info, err := os.Stat(string(s.Origin))
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			r.add(areaConfig, Warning, fmt.Sprintf("%s holds secrets and is open to other users: chmod 600 %s", s.Origin,
				s.Origin))
			return
		}
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
