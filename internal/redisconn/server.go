package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// noEviction is the only policy that never evicts keys, and so never loses stock.
const noEviction = "noeviction"

// ErrEvicts reports a server that may evict keys.
var ErrEvicts = errors.New("maxmemory-policy is not noeviction")

// Server is the information that one server reports. Fields that it does not report are
// empty.
type Server struct {
	Addr       string
	Version    string
	RunID      string    // changes with every start of the process
	Policy     string    // maxmemory-policy
	AppendOnly string    // "yes" or "no"
	Now        time.Time // its clock, which determines the windows of gates
}

// Servers queries every server, or every master of a Cluster.
func (c *Conn) Servers(ctx context.Context) ([]Server, error) {
	cluster, ok := c.Cmd.(*redis.ClusterClient)
	if !ok {
		s, err := describe(ctx, c.Cmd, c.opts.Addrs[0])
		return []Server{s}, err
	}
	var mu sync.Mutex
	var all []Server // guarded by mu
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		s, err := describe(ctx, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return err
	})
	return all, err
}

// Check returns ErrEvicts for a server that would evict keys when its memory is full. A
// server that does not report its policy passes; Findings lists it.
func (c *Conn) Check(ctx context.Context) error {
	servers, err := c.Servers(ctx)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.Policy != "" && s.Policy != noEviction {
			return fmt.Errorf("redis %s: %w but %s: stock would be lost under memory pressure; CONFIG SET maxmemory-policy noeviction",
				s.Addr, ErrEvicts, s.Policy)
		}
	}
	return nil
}

// Findings lists what an operator should know but does not prevent a start, one line
// each.
func (c *Conn) Findings(ctx context.Context) ([]string, error) {
	servers, err := c.Servers(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, s := range servers {
		if s.Policy == "" {
			found = append(found, fmt.Sprintf("redis %s: maxmemory-policy is not told (CONFIG GET refused); it must be noeviction", s.Addr))
		}
		if s.AppendOnly == "no" {
			found = append(found, fmt.Sprintf("redis %s: appendonly is off; a restart loses unwritten orders until they are rebuilt", s.Addr))
		}
	}
	return found, nil
}

func describe(ctx context.Context, node redis.Cmdable, addr string) (Server, error) {
	s := Server{Addr: addr}
	now, err := node.Time(ctx).Result()
	if err != nil {
		return s, fmt.Errorf("redis %s: time: %w", addr, err)
	}
	s.Now = now
	// A server may forbid or not know the other commands; their fields stay empty.
	info, err := node.Info(ctx, "server").Result()
	if err != nil && !answered(err) {
		return s, fmt.Errorf("redis %s: info: %w", addr, err)
	}
	s.Version, s.RunID = infoField(info, "redis_version"), infoField(info, "run_id")
	for name, into := range map[string]*string{"maxmemory-policy": &s.Policy, "appendonly": &s.AppendOnly} {
		values, err := node.ConfigGet(ctx, name).Result()
		if err != nil && !answered(err) {
			return s, fmt.Errorf("redis %s: config get %s: %w", addr, name, err)
		}
		*into = values[name]
	}
	return s, nil
}

// answered reports whether an error is a reply of the server, and not a connection
// failure.
func answered(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
