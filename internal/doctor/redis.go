package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"seckill/internal/redisconn"
)

const areaRedis = "redis"

// minRedis is the oldest version with XAUTOCLAIM, which takes over the messages of a
// crashed worker.
var minRedis = [2]int{6, 2}

// noEviction is the only policy that never evicts stock to free memory.
const noEviction = "noeviction"

func (r *report) redis(ctx context.Context, d Deps) {
	if d.Config.RedisURL == "" {
		return // reported by the settings check
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	conn, err := redisconn.Open(ctx, d.Config.RedisURL.Reveal())
	if err != nil {
		r.add(areaRedis, Error, redisAway(d.Config, err).finding())
		return
	}
	defer func() { _ = conn.Close() }()
	before := d.Clock.Now()
	servers, err := conn.Servers(ctx)
	after := d.Clock.Now()
	if err != nil {
		r.add(areaRedis, Error, fmt.Sprintf("cannot be inspected: %v", err))
		return
	}
	for _, s := range servers {
		r.redisServer(s)
		r.redisLosses(s)
		r.skew("redis "+s.Addr, s.Now, before, after)
	}
}

func (r *report) redisServer(s redisconn.Server) {
	switch old, known := olderThan(s.Version, minRedis); {
	case s.NoInfo:
		r.add(areaRedis, Error, s.Addr+" refuses INFO to this user: no gate is served; ACL SETUSER … +info")
	case !known:
		r.add(areaRedis, Warning, fmt.Sprintf("%s does not report its version: at least %d.%d is needed", s.Addr, minRedis[0], minRedis[1]))
	case old:
		r.add(areaRedis, Error, fmt.Sprintf("%s is version %s: at least %d.%d is needed", s.Addr, s.Version, minRedis[0], minRedis[1]))
	default:
		r.add(areaRedis, OK, fmt.Sprintf("%s is reachable, version %s", s.Addr, s.Version))
	}
	switch s.Policy {
	case noEviction:
		r.add(areaRedis, OK, s.Addr+" never evicts")
	case "":
		r.add(areaRedis, Warning, s.Addr+" does not report its maxmemory-policy: it must be noeviction")
	default:
		r.add(areaRedis, Error, fmt.Sprintf("%s evicts (maxmemory-policy %s): stock would be lost when memory is short; CONFIG SET maxmemory-policy noeviction", s.Addr, s.Policy))
	}
}

// redisLosses reports what a crash or a failover may lose: accepted orders that no worker
// has written yet. Their tasks fail, and the audit lists them.
func (r *report) redisLosses(s redisconn.Server) {
	switch {
	case s.AppendOnly == "no":
		r.add(areaRedis, Warning, s.Addr+" keeps no append-only file: after a restart, orders not written yet are lost and gates are rebuilt; CONFIG SET appendonly yes")
	case s.AppendSync == "no":
		r.add(areaRedis, Warning, s.Addr+" leaves the append-only file to its system (appendfsync no): a crash of its machine loses some thirty seconds of orders not written yet; CONFIG SET appendfsync everysec, or always to lose none")
	case s.AppendSync == "everysec":
		r.add(areaRedis, OK, s.Addr+" saves every second: a crash of its machine loses up to two seconds of orders not written yet; with appendfsync always it loses none")
	case s.AppendSync == "always":
		r.add(areaRedis, OK, s.Addr+" saves every write before it answers")
	}
	if n, err := strconv.Atoi(s.Replicas); err == nil && n > 0 && s.MinWrite == "0" {
		r.add(areaRedis, Warning, fmt.Sprintf("%s has %d replicas and accepts writes without them (min-replicas-to-write 0): a failover loses what an isolated master accepts; CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 10 to bound the loss to ten seconds", s.Addr, n))
	}
}

// olderThan reports whether a version such as "7.0.15" is lower than major and minor.
func olderThan(version string, least [2]int) (older, known bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return false, false
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return false, false
	}
	return major < least[0] || major == least[0] && minor < least[1], true
}
