package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/fault"
)

// noEviction is the only policy that never evicts keys, and so never loses stock.
const noEviction = "noeviction"

var (
	// ErrEvicts reports a server that may evict keys.
	ErrEvicts = errors.New("maxmemory-policy is not noeviction")
	// ErrNoInfo reports a server whose ACL refuses INFO.
	ErrNoInfo = errors.New("its user may not run INFO")
	// ErrNoLua reports a server that runs no scripts.
	ErrNoLua = errors.New("it runs no Lua scripts for its user")
)

// Server is the information that one server reports. Fields that it does not report are
// empty.
type Server struct {
	Addr       string
	Version    string
	Valkey     string    // version of Valkey, whose Version is that of the Redis it is like
	RunID      string    // changes with every start of the process
	Policy     string    // maxmemory-policy
	AppendOnly string    // "yes" or "no"
	AppendSync string    // appendfsync: "always", "everysec" or "no"
	Replicas   string    // number of connected replicas
	MinWrite   string    // min-replicas-to-write
	MaxClients string    // maxclients
	NoInfo     bool      // its ACL refuses INFO to this user
	NoLua      string    // why it runs no scripts for this user; "" = it does
	Now        time.Time // its clock, which determines the windows of gates
}

// Servers queries every server, or every master of a Cluster.
func (c *Conn) Servers(ctx context.Context) ([]Server, error) {
	cluster, ok := c.Cmd.(*redis.ClusterClient)
	if !ok {
		s, err := describe(ctx, c.Cmd, cmp.Or(c.opts.MasterName, c.opts.Addrs[0]))
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

// Times returns the clock of every server, or of every master of a Cluster.
func (c *Conn) Times(ctx context.Context) ([]time.Time, error) {
	cluster, ok := c.Cmd.(*redis.ClusterClient)
	if !ok {
		now, err := c.Cmd.Time(ctx).Result()
		return []time.Time{now}, err
	}
	var mu sync.Mutex
	var all []time.Time // guarded by mu
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		now, err := node.Time(ctx).Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, now)
		return err
	})
	return all, err
}

// keysPerScan is the COUNT of one SCAN: it occupies Redis for less than 1 ms.
const keysPerScan = 1000

// Literal quotes the characters of a text that have a meaning in patterns.
func Literal(text string) string { return globs.Replace(text) }

var globs = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// EachKey visits the keys that match a pattern, page by page, on every master. A key that
// is there throughout is visited at least once.
func (c *Conn) EachKey(ctx context.Context, pattern string, visit func(keys []string) error) error {
	scan := func(ctx context.Context, node redis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := node.Scan(ctx, cursor, pattern, keysPerScan).Result()
			if err != nil {
				return fmt.Errorf("scan keys: %w", err)
			}
			if len(keys) > 0 {
				if err := visit(keys); err != nil {
					return err
				}
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	cluster, ok := c.Cmd.(*redis.ClusterClient)
	if !ok {
		return scan(ctx, c.Cmd)
	}
	var mu sync.Mutex // visit is not called concurrently
	inner := visit
	visit = func(keys []string) error {
		mu.Lock()
		defer mu.Unlock()
		return inner(keys)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
}

// Lasting returns the advice to change a setting of Redis, so that it outlives a restart.
func Lasting(setting string) string {
	return "CONFIG SET " + setting + " and CONFIG REWRITE, or write it into redis.conf"
}

// Check returns ErrEvicts for a server that would evict keys when its memory is full,
// and ErrNoInfo for one whose gates would count as lost, because scripts cannot compare
// its run id. A server that does not report its policy passes; Findings lists it.
func (c *Conn) Check(ctx context.Context) error {
	servers, err := c.Servers(ctx)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.NoInfo {
			return fmt.Errorf("redis %s: %w: no gate would be served; ACL SETUSER %s +info and ACL SAVE", s.Addr, ErrNoInfo, c.user())
		}
		if s.NoLua != "" {
			return fmt.Errorf("redis %s: %w, and each purchase is one: %s; ACL SETUSER %s +eval +evalsha and ACL SAVE, or use another server",
				s.Addr, ErrNoLua, s.NoLua, c.user())
		}
		if s.Policy != "" && s.Policy != noEviction {
			return fmt.Errorf("redis %s: %w but %s: stock would be lost under memory pressure; %s",
				s.Addr, ErrEvicts, s.Policy, Lasting("maxmemory-policy noeviction"))
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
			found = append(found, fmt.Sprintf("redis %s: maxmemory-policy is unknown (CONFIG GET refused); it must be noeviction", s.Addr))
		}
		if s.AppendOnly == "no" {
			found = append(found, fmt.Sprintf("redis %s: appendonly is off; a restart loses unwritten orders until they are rebuilt", s.Addr))
		}
	}
	return found, nil
}

// user returns the name of the connections' user.
func (c *Conn) user() string {
	if c.opts.Username == "" {
		return "default"
	}
	return c.opts.Username
}

// probe is a script that does nothing.
var probe = redis.NewScript("return 1")

func describe(ctx context.Context, node redis.Cmdable, addr string) (Server, error) {
	s := Server{Addr: addr}
	now, err := node.Time(ctx).Result()
	if err != nil {
		return s, fmt.Errorf("redis %s: time: %w", addr, err)
	}
	s.Now = now
	if err := probe.Run(ctx, node.(redis.Scripter), nil).Err(); err != nil { // every client is one
		if !answered(err) || fault.IsTransient(err) && !redis.HasErrorPrefix(err, "NOPERM") {
			return s, fmt.Errorf("redis %s: script: %w", addr, err)
		}
		s.NoLua = err.Error()
	}
	// A server may forbid or not know the other commands; their fields stay empty.
	for _, section := range []string{"server", "replication"} {
		info, err := node.Info(ctx, section).Result()
		if err != nil && !answered(err) {
			return s, fmt.Errorf("redis %s: info: %w", addr, err)
		}
		s.NoInfo = s.NoInfo || redis.HasErrorPrefix(err, "NOPERM")
		for name, into := range map[string]*string{"redis_version": &s.Version, "valkey_version": &s.Valkey,
			"run_id": &s.RunID, "connected_slaves": &s.Replicas} {
			if value := infoField(info, name); value != "" {
				*into = value
			}
		}
	}
	for name, into := range map[string]*string{
		"maxmemory-policy": &s.Policy, "appendonly": &s.AppendOnly, "appendfsync": &s.AppendSync,
		"min-replicas-to-write": &s.MinWrite,
		"maxclients":            &s.MaxClients,
	} {
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
