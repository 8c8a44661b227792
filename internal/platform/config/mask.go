package config

import (
	"net/url"
	"regexp"
	"strings"

	"seckill/internal/platform/collect"
)

// mask replaces secret text.
const mask = "***"

// Parameters of addresses whose values are shown, and those that hold secrets. The names
// of others are not shown either: they may be the rest of a password with an &.
var (
	shownParameters = setOf("sslmode", "sslrootcert", "sslcert", "sslkey", "host", "port", "dbname",
		"target_session_attrs", "load_balance_hosts", "connect_timeout", "application_name", "statement_timeout",
		"lock_timeout", "idle_in_transaction_session_timeout", "search_path", "db", "ca", "dial_timeout",
		"read_timeout", "write_timeout", "pool_timeout", "region", "insecure")
	secretParameters = setOf("user", "password", "passfile", "sslpassword", "sentinel_username", "sentinel_password")
)

func setOf(words ...string) map[string]bool {
	return collect.Set(words)
}

// schemes are those of addresses: any other text with :// in it is masked whole.
var schemes = setOf("postgres", "postgresql", "redis", "rediss", "redis+sentinel", "rediss+sentinel", "smtp", "smtps",
	"s3", "http", "https", "socks5")

// parameter begins a parameter: an @ after it may be part of its value.
var parameter = regexp.MustCompile(`[?&][A-Za-z0-9_.-]+=`)

// maskAddress returns an address, or a list of addresses, without user, password and the
// values of parameters. Where a character of the password misleads parsers, what stands
// before the last @ counts as the password.
func maskAddress(text string) string {
	if strings.Contains(text, ",") && !sharesHosts(text) {
		if list, ok := maskList(text); ok {
			return list
		}
	}
	if masked, ok := maskClean(text); ok {
		return masked
	}
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL || !schemes[scheme] {
		return mask
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || parameter.MatchString(rest[:at]) {
		return scheme + "://" + mask
	}
	host, ok := maskClean(scheme + "://" + rest[at+1:])
	if !ok {
		return scheme + "://" + mask
	}
	return scheme + "://" + mask + "@" + strings.TrimPrefix(host, scheme+"://")
}

// maskList masks the nodes of a Cluster, of which those after the first may be host:port.
func maskList(text string) (masked string, ok bool) {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		if i > 0 && plainHost.MatchString(part) {
			continue
		}
		if parts[i], ok = maskClean(strings.TrimSpace(part)); !ok {
			return "", false
		}
	}
	return strings.Join(parts, ","), true
}

// plainHost is a node of a Cluster after the first.
var plainHost = regexp.MustCompile(`^\s*[A-Za-z0-9.-]+:[0-9]{1,5}\s*$`)

// sharesHosts reports whether the commas of an address separate hosts of one URL.
func sharesHosts(text string) bool {
	scheme, _, _ := strings.Cut(text, "://")
	return strings.HasSuffix(scheme, "+sentinel") || strings.HasPrefix(scheme, "postgres")
}

// maskClean masks an address that all parsers understand alike.
func maskClean(text string) (masked string, ok bool) {
	u, err := readAddress(text)
	if err != nil || !schemes[u.Scheme] || u.Host == "" && !u.Query().Has("host") {
		return mask, false
	}
	if u.User != nil {
		u.User = url.User(mask)
	}
	u.RawQuery = maskQuery(u.RawQuery)
	return strings.ReplaceAll(u.String(), url.QueryEscape(mask), mask), true
}

func maskQuery(raw string) string {
	if raw == "" {
		return ""
	}
	var parts []string
	for part := range strings.SplitSeq(raw, "&") {
		name, escaped, _ := strings.Cut(part, "=")
		value, err := url.QueryUnescape(escaped)
		switch {
		case err == nil && shownParameters[name]:
			parts = append(parts, name+"="+url.QueryEscape(value))
		case secretParameters[name]:
			parts = append(parts, name+"="+mask)
		default:
			parts = append(parts, mask)
		}
	}
	return strings.Join(parts, "&")
}

// readAddress parses an address, and refuses one that means another to its reader than to
// a parser: a / ? or # in a password ends the host.
func readAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errUnreadable // the error of url.Parse contains the password
	}
	if strings.Contains(text, "#") || strings.Contains(u.EscapedPath(), "@") || strings.Contains(u.Host, "@") {
		return nil, errUnreadable
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if strings.Contains(part, "@") && !shownParameters[name] && !secretParameters[name] {
			return nil, errUnreadable
		}
	}
	if _, err := url.ParseQuery(u.RawQuery); err != nil {
		return nil, errUnreadable
	}
	return u, nil
}

// Misleads reports whether a character of the password in an address ends its host for
// parsers, so that it must not be used.
func (s Secret) Misleads() bool {
	_, err := readAddress(string(s))
	return err != nil
}

type unreadableError struct{}

func (unreadableError) Error() string {
	return "cannot be read: percent-encode the password in it (@ is %40, / is %2F, ? is %3F, # is %23, % is %25, a comma is %2C, a space is %20)"
}

var errUnreadable = unreadableError{}

// addressStart is where an address begins in a text.
var addressStart = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)

// examples are the user and password of addresses in help texts and advice.
var examples = setOf("user:password", ":password", "key:secret", "user")

// MaskText returns a text, such as a message or an error of a driver, with its addresses
// masked: of each, user, password and the values of parameters.
func MaskText(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	var out strings.Builder
	for text != "" {
		found := addressStart.FindStringIndex(text)
		if found == nil {
			break
		}
		end := addressEnd(text, found[0])
		out.WriteString(text[:found[0]])
		out.WriteString(maskFound(text[found[0]:end]))
		text = text[end:]
	}
	out.WriteString(text)
	return out.String()
}

// addressEnd returns where the address ends that starts at a place of a text: at the quote
// that encloses it, else at a blank.
func addressEnd(text string, start int) int {
	if start > 0 && strings.IndexByte("\"'`", text[start-1]) >= 0 {
		for i := start; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case text[start-1]:
				return i
			}
		}
	}
	end := len(text)
	if blank := strings.IndexAny(text[start:], " \t\r\n"); blank >= 0 {
		end = start + blank
	}
	return start + len(strings.TrimRight(text[start:end], ":;,.)]"))
}

// maskValue returns the value of a setting with its address masked, if it is one.
func maskValue(text string) string {
	if start := addressStart.FindStringIndex(text); start != nil && start[0] == 0 {
		return maskFound(text)
	}
	return MaskText(text)
}

func maskFound(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 && !strings.ContainsAny(rest, "?#") || at >= 0 && examples[rest[:at]] {
		return address
	}
	return maskAddress(address)
}
