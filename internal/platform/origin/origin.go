// Package origin owns which pages outside of the shop a browser may be sent to: those of
// the origins in the settings. It does not own the origins that may use the API by CORS
// and WebSocket (internal/app/server and graph/transport).
package origin

import (
	"net/url"
	"slices"
	"strings"
)

// maxAddress bounds an address, in bytes.
const maxAddress = 2048

// Set holds origins as scheme://host, in lower case and without the scheme's own port.
type Set []string

// NewSet returns the origins of addresses of http or https. Others are left out.
func NewSet(addresses ...string) Set {
	var set Set
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.Host != "" && !slices.Contains(set, of(u)) {
			set = append(set, of(u))
		}
	}
	return set
}

// Has reports whether an address is an absolute one of an origin in the set. It refuses
// everything that browsers and net/url may read in different ways: characters outside of
// printable ASCII, backslashes, and user names.
func (s Set) Has(address string) bool {
	if len(address) > maxAddress ||
		strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && slices.Contains(s, of(u))
}

// ports are the ports that addresses of a scheme leave out.
var ports = map[string]string{"http": ":80", "https": ":443"}

func of(u *url.URL) string {
	host := strings.ToLower(u.Host)
	return u.Scheme + "://" + strings.TrimSuffix(host, ports[u.Scheme])
}
