// Package redisconn opens connections to Redis, one server, a Cluster or the master that
// Sentinels name, with the settings that the product requires.
//
// It owns timeouts, retries and the check that the server is suitable. It owns no key
// and knows no script.
package redisconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"seckill/internal/platform/collect"
	"seckill/internal/platform/priority"
)

// Bounds of one command. A script takes microseconds; a server that does not reply
// within these bounds counts as unavailable, and the caller gets an error early.
const (
	dialTimeout  = time.Second
	readTimeout  = 500 * time.Millisecond
	writeTimeout = 500 * time.Millisecond
	// poolTimeout bounds the wait for a free connection. A burst of calls in one second
	// is served in less time; refusing calls with a retry after 150 ms prolongs it.
	poolTimeout = time.Second
	poolSize    = 32 // per client; a group-committed script needs only a few
	maxDials    = 8  // at a time and client: after an outage all processes connect at once

	// blockingReadTimeout is longer than any blocking read.
	blockingReadTimeout = 15 * time.Second
)

// Conn is the set of clients of one Redis.
type Conn struct {
	Cmd    redis.UniversalClient // plain commands; a failed command is retried once
	Script redis.UniversalClient // scripts and appends; never retried

	reserve redis.UniversalClient // of Cmd and Script, for urgent commands
	opts    redis.UniversalOptions
	traced  bool
}

// silence turns the library's own log off, once, because it writes to stderr and errors
// are returned anyway. The switch is not safe for concurrent use.
var silence = sync.OnceFunc(logging.Disable)

// Open connects to the server at rawURL, "redis://user:password@host:port/db" (rediss
// for TLS), and pings it. A comma-separated list of addresses is a Cluster; the
// addresses after the first may be plain host:port. The addresses of
// "redis+sentinel://user:password@host:port,host:port/master?db=0" are Sentinels, which
// are asked for the master of that name. The parameters dial_timeout, read_timeout,
// write_timeout and pool_timeout of the first URL (durations such as 2s) override the
// defaults; ca names a file with the certificates that TLS trusts.
func Open(ctx context.Context, rawURL string) (*Conn, error) { return OpenVia(ctx, rawURL, nil) }

// Dial opens a connection to an address.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// OpenVia is Open with connections that dial opens; nil = those of the network.
func OpenVia(ctx context.Context, rawURL string, dial Dial) (*Conn, error) {
	opts, err := parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	opts.Dialer = dial
	silence()
	c := &Conn{opts: opts}
	c.Cmd = c.client(func(o *redis.UniversalOptions) { o.MaxRetries = 1 })
	c.Script = c.NewClient()
	c.reserve = c.client(func(o *redis.UniversalOptions) {
		neverTwice(o)
		o.PoolSize = priority.ReserveConns
	})
	for _, client := range []redis.UniversalClient{c.Cmd, c.Script} {
		client.AddHook(reserveHook{client, c.reserve, opts.PoolSize})
	}
	if err := c.Cmd.Ping(ctx).Err(); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	return c, nil
}

// NewClient returns a separate client without retries, for a component that closes its
// client. The caller closes it.
func (c *Conn) NewClient() redis.UniversalClient { return c.client(neverTwice) }

// NewBlocking returns a separate client for blocking reads, which would occupy the
// connections of other callers. The caller closes it.
func (c *Conn) NewBlocking() redis.UniversalClient {
	return c.client(func(o *redis.UniversalOptions) {
		neverTwice(o)
		o.ReadTimeout = max(o.ReadTimeout, blockingReadTimeout)
	})
}

// Close closes Cmd and Script.
func (c *Conn) Close() error { return errors.Join(c.Cmd.Close(), c.Script.Close(), c.reserve.Close()) }

// neverTwice disables retries, because a command whose reply was lost may have taken
// effect. On a Cluster this includes redirections, which go-redis counts as retries:
// the caller gets the error, and the next call goes to the right node.
func neverTwice(o *redis.UniversalOptions) { o.MaxRetries, o.MaxRedirects = -1, -1 }

func (c *Conn) client(adjust func(*redis.UniversalOptions)) redis.UniversalClient {
	o := c.opts
	adjust(&o)
	client := redis.NewUniversalClient(&o)
	reloadOnDialErrors(client)
	if c.traced {
		client.AddHook(traced{})
	}
	return client
}

func parse(rawURL string) (redis.UniversalOptions, error) {
	opts := defaults()
	if isSentinel(rawURL) {
		return opts, parseSentinel(rawURL, &opts)
	}
	return opts, parseServers(rawURL, &opts)
}

// defaults returns the settings that the product requires of every client.
func defaults() redis.UniversalOptions {
	return redis.UniversalOptions{
		ClientName:            "seckill",
		DialTimeout:           dialTimeout,
		DialerRetries:         1,
		ReadTimeout:           readTimeout,
		WriteTimeout:          writeTimeout,
		PoolTimeout:           poolTimeout,
		PoolSize:              poolSize,
		MaxConcurrentDials:    maxDials,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		// Only managed services send maintenance notifications.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// parseServers reads the address of one server, or of several nodes of a Cluster.
func parseServers(rawURL string, opts *redis.UniversalOptions) error {
	for i, part := range strings.Split(rawURL, ",") {
		part = strings.TrimSpace(part)
		if i > 0 && !strings.Contains(part, "://") {
			if _, _, err := net.SplitHostPort(part); err != nil {
				return err
			}
			opts.Addrs = append(opts.Addrs, part)
			continue
		}
		part, roots, err := withoutCA(part)
		if err != nil {
			return hidePassword(err)
		}
		one, err := redis.ParseURL(part)
		if err != nil {
			return hidePassword(err)
		}
		opts.Addrs = append(opts.Addrs, one.Addr)
		if i == 0 {
			opts.Username, opts.Password, opts.DB = one.Username, one.Password, one.DB
			opts.TLSConfig = cloneTLS(one.TLSConfig, roots)
			setTimeouts(opts, one)
		}
	}
	opts.IsClusterMode = len(opts.Addrs) > 1
	if opts.IsClusterMode && opts.DB != 0 {
		return errors.New("a Cluster has database 0 only")
	}
	return nil
}

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

// cloneTLS removes the server name of the first address, so that each node of a Cluster
// is verified by its own name.
func cloneTLS(cfg *tls.Config, roots *x509.CertPool) *tls.Config {
	if cfg == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

// hidePassword keeps the reason of a net/url error and removes the quoted URL.
func hidePassword(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// ExecEach executes a pipeline whose commands are checked one by one, because in a Cluster
// some servers may be down: afterwards a command has its own reply or an error. go-redis
// leaves the commands without either when a server refuses the connection itself, as
// after a change of the password or while a script blocks it: zero values would pass for
// replies.
func ExecEach(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			return // err is of this command, and the others have their replies
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Run is one run of a script.
type Run struct {
	Keys []string
	Args []any
}

// RunEach runs a script several times in one round trip, and once more each if the server does
// not have it. As after ExecEach, each command has its own reply or an error.
func RunEach(ctx context.Context, client redis.UniversalClient, script *redis.Script, runs []Run) []*redis.Cmd {
	pipe := client.Pipeline()
	cmds := collect.Map(runs, func(r Run) *redis.Cmd { return script.EvalSha(ctx, pipe, r.Keys, r.Args...) })
	ExecEach(ctx, pipe)
	for i, r := range runs {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			cmds[i] = script.Eval(ctx, client, r.Keys, r.Args...)
		}
	}
	return cmds
}
