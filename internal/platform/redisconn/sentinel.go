package redisconn

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// sentinelPort is the port of Sentinels whose address has none.
const sentinelPort = "26379"

// isSentinel reports whether an address names Sentinels: redis+sentinel, or
// rediss+sentinel for TLS.
func isSentinel(rawURL string) bool {
	scheme, _, _ := strings.Cut(strings.TrimSpace(rawURL), "://")
	return scheme == "redis+sentinel" || scheme == "rediss+sentinel"
}

// parseSentinel reads "redis+sentinel://user:password@host:port,host:port/master". User
// and password are those of the master. The parameters sentinel_username and
// sentinel_password are those of the Sentinels, db is the number of the database.
func parseSentinel(rawURL string, opts *redis.UniversalOptions) error {
	u, err := url.Parse(strings.TrimSpace(rawURL))
	if err != nil {
		return hidePassword(err)
	}
	for addr := range strings.SplitSeq(u.Host, ",") {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), sentinelPort)
		}
		if strings.HasPrefix(addr, ":") {
			return errors.New("an address of a Sentinel has no host")
		}
		opts.Addrs = append(opts.Addrs, addr)
	}
	opts.MasterName = strings.Trim(u.Path, "/")
	if opts.MasterName == "" {
		return errors.New("the name of the master is missing: redis+sentinel://host:26379/mymaster")
	}
	query := u.Query()
	opts.SentinelUsername, opts.SentinelPassword = query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	// What is left is the address of a server, except that its host is not known yet.
	server := url.URL{
		Scheme: strings.TrimSuffix(u.Scheme, "+sentinel"), User: u.User, Host: opts.Addrs[0],
		Path: "/" + cmp.Or(query.Get("db"), "0"),
	}
	query.Del("db")
	server.RawQuery = query.Encode()
	text, roots, err := withoutCA(server.String())
	if err != nil {
		return hidePassword(err)
	}
	one, err := redis.ParseURL(text)
	if err != nil {
		return hidePassword(err)
	}
	opts.Username, opts.Password, opts.DB = one.Username, one.Password, one.DB
	opts.TLSConfig = cloneTLS(one.TLSConfig, roots)
	setTimeouts(opts, one)
	return nil
}

// withoutCA removes the parameter ca from an address and returns the certificates in the
// file that it names; nil without it, which stands for those that the host trusts.
func withoutCA(address string) (string, *x509.CertPool, error) {
	u, err := url.Parse(address)
	if err != nil {
		return address, nil, err
	}
	query := u.Query()
	path := query.Get("ca")
	if path == "" {
		return address, nil, nil
	}
	query.Del("ca")
	u.RawQuery = query.Encode()
	text, err := os.ReadFile(path)
	if err != nil {
		return address, nil, fmt.Errorf("ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return address, nil, fmt.Errorf("ca: %s has no certificate in PEM format", path)
	}
	return u.String(), roots, nil
}
