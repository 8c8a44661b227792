// Package redisconn opens connections to Redis, one server or a Cluster, with
// the settings that the product relies on.
//
// It owns timeouts, retries and the check that the server is fit. It owns no
// key and knows no script.
package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Bounds of one command. A script takes microseconds; a server that does not
// answer within these is as good as away, and the caller should hear so early.
const (
	dialTimeout  = time.Second
	readTimeout  = 500 * time.Millisecond
	writeTimeout = 500 * time.Millisecond
	// poolTimeout bounds the wait for a free connection. A crowd that comes in one second
	// is served in less: who was told to come back after 150 ms made it longer.
	poolTimeout = time.Second
	poolSize    = 32 // per client; a group-committed script needs few

	// blockingReadTimeout is longer than any blocking read waits by itself.
	blockingReadTimeout = 15 * time.Second
)

// Conn is an open Redis.
type Conn struct {
	Cmd    redis.UniversalClient // plain commands; a failed one is tried once more
	Script redis.UniversalClient // scripts and appends; nothing is ever sent twice

	opts redis.UniversalOptions
}

// silence turns the library's own log off, once: what fails is returned, it would
// be written to standard error besides. The switch is not made for two at a time.
var silence = sync.OnceFunc(logging.Disable)

// Open connects to the server at rawURL, "redis://user:password@host:port/db"
// (rediss for TLS), and pings it. A comma-separated list of addresses is a
// Cluster; what follows the first may be plain host:port. The parameters
// dial_timeout, read_timeout, write_timeout and pool_timeout of the first URL
// (durations such as 2s) take the place of the defaults.
func Open(ctx context.Context, rawURL string) (*Conn, error) {
	opts, err := parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	silence()
	c := &Conn{opts: opts}
	c.Cmd = c.client(func(o *redis.UniversalOptions) { o.MaxRetries = 1 })
	c.Script = c.NewClient()
	if err := c.Cmd.Ping(ctx).Err(); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	return c, nil
}

// NewClient returns a client of its own that sends nothing twice, for a part
// that closes the client it was given. The caller closes it.
func (c *Conn) NewClient() redis.UniversalClient { return c.client(neverTwice) }

// NewBlocking returns a client of its own for blocking reads, which would hold
// the connections of everybody else. The caller closes it.
func (c *Conn) NewBlocking() redis.UniversalClient {
	return c.client(func(o *redis.UniversalOptions) {
		neverTwice(o)
		o.ReadTimeout = max(o.ReadTimeout, blockingReadTimeout)
	})
}

// Close closes Cmd and Script.
func (c *Conn) Close() error { return errors.Join(c.Cmd.Close(), c.Script.Close()) }

// neverTwice turns retries off: a command whose reply was lost may have taken
// effect. On a Cluster that includes redirections, which go-redis counts with
// the retries; after one the caller sees the error, and the next call goes to
// the right node.
func neverTwice(o *redis.UniversalOptions) { o.MaxRetries, o.MaxRedirects = -1, -1 }

func (c *Conn) client(adjust func(*redis.UniversalOptions)) redis.UniversalClient {
	o := c.opts
	adjust(&o)
	client := redis.NewUniversalClient(&o)
	reloadOnDialErrors(client)
	return client
}

func parse(rawURL string) (redis.UniversalOptions, error) {
	opts := redis.UniversalOptions{
		ClientName:            "seckill",
		DialTimeout:           dialTimeout,
		DialerRetries:         1,
		ReadTimeout:           readTimeout,
		WriteTimeout:          writeTimeout,
		PoolTimeout:           poolTimeout,
		PoolSize:              poolSize,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		// Only managed offerings announce maintenance.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for i, part := range strings.Split(rawURL, ",") {
		part = strings.TrimSpace(part)
		if i > 0 && !strings.Contains(part, "://") {
			if _, _, err := net.SplitHostPort(part); err != nil {
				return opts, err
			}
			opts.Addrs = append(opts.Addrs, part)
			continue
		}
		one, err := redis.ParseURL(part)
		if err != nil {
			return opts, hidePassword(err)
		}
		opts.Addrs = append(opts.Addrs, one.Addr)
		if i == 0 {
			opts.Username, opts.Password, opts.DB = one.Username, one.Password, one.DB
			opts.TLSConfig = cloneTLS(one.TLSConfig)
			setTimeouts(&opts, one)
		}
	}
	opts.IsClusterMode = len(opts.Addrs) > 1
	if opts.IsClusterMode && opts.DB != 0 {
		return opts, errors.New("a Cluster has database 0 only")
	}
	return opts, nil
}

// setTimeouts takes over the timeouts that a URL sets.
func setTimeouts(opts *redis.UniversalOptions, one *redis.Options) {
	for field, value := range map[*time.Duration]time.Duration{
		&opts.DialTimeout: one.DialTimeout, &opts.ReadTimeout: one.ReadTimeout,
		&opts.WriteTimeout: one.WriteTimeout, &opts.PoolTimeout: one.PoolTimeout,
	} {
		if value > 0 {
			*field = value
		}
	}
}

// cloneTLS drops the server name that the first address set, so that each node
// of a Cluster is verified by its own.
func cloneTLS(cfg *tls.Config) *tls.Config {
	if cfg == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// hidePassword keeps what net/url says is wrong and drops the text it quotes.
func hidePassword(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
