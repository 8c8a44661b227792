package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"seckill/internal/platform/config"
	"seckill/internal/platform/redisconn"
)

const areaRedis = "redis"

// minRedis is the oldest version with XAUTOCLAIM, which takes over the messages of a
// crashed worker. triedRedis is the oldest that the tests run on.
var (
	minRedis   = [2]int{6, 2}
	triedRedis = [2]int{7, 0}
)

// luaHole is a use after free in the Lua of Redis, by which any user that may run scripts can run
// any program: https://github.com/redis/redis/security/advisories/GHSA-4789-qfc9-5f9q
const luaHole = "CVE-2025-49844"

// fixedRedis and fixedValkey have the first release of each series without luaHole. Later
// series never had it; no release of the others is without it.
var (
	fixedRedis  = map[[2]int]int{{6, 2}: 20, {7, 2}: 11, {7, 4}: 6, {8, 0}: 4, {8, 2}: 2}
	fixedValkey = map[[2]int]int{{7, 2}: 11, {8, 0}: 6, {8, 1}: 4}
)

// packagedRedis is the version that Debian 12 and Ubuntu 24.04 maintain: its number does not
// say whether it has the fix.
const packagedRedis = "7.0.15"

// noEviction is the only policy that never evicts stock to free memory.
const noEviction = "noeviction"

func (r *report) redis(ctx context.Context, d Deps) {
	if !d.Config.Meets(config.NeedRedis) {
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
		r.redisClients(s)
		r.skew("redis "+s.Addr, s.Now, before, after)
	}
}

func (r *report) redisServer(s redisconn.Server) {
	switch old, known := olderThan(s.Version, minRedis); {
	case s.NoInfo:
		r.add(areaRedis, Error, s.Addr+" refuses INFO to this user: no gate is served; ACL SETUSER … +info and ACL SAVE")
	case !known:
		r.add(areaRedis, Warning, fmt.Sprintf("%s does not report its version: at least %d.%d is needed", s.Addr, minRedis[0],
			minRedis[1]))
	case old:
		r.add(areaRedis, Error, fmt.Sprintf("%s is version %s: at least %d.%d is needed", s.Addr, s.Version, minRedis[0],
			minRedis[1]))
	default:
		r.redisVersion(s)
	}
	if s.NoLua != "" {
		r.add(areaRedis, Error, fmt.Sprintf("%s runs no Lua scripts for this user, and each purchase is one (%s): ACL SETUSER … +eval +evalsha and ACL SAVE, or use another server", s.Addr, s.NoLua))
	}
	switch s.Policy {
	case noEviction:
		r.add(areaRedis, OK, s.Addr+" never evicts")
	case "":
		r.add(areaRedis, Warning, s.Addr+" does not report its maxmemory-policy: it must be noeviction")
	default:
		r.add(areaRedis, Error, fmt.Sprintf("%s evicts (maxmemory-policy %s): stock would be lost when memory is short; %s", s.Addr, s.Policy,
			redisconn.Lasting("maxmemory-policy noeviction")))
	}
}

// redisVersion reports versions that the tests do not run on, and those with luaHole.
func (r *report) redisVersion(s redisconn.Server) {
	version := cmp.Or(s.Valkey, s.Version)
	note := ""
	switch fix, hole := luaHoleOf(s); {
	case hole && version == packagedRedis:
		note = fmt.Sprintf("; Debian 12 closes the hole %s in its Lua since 5:7.0.15-1~deb12u6, an own build has it", luaHole)
	case hole:
		r.add(areaRedis, Warning, fmt.Sprintf(
			"%s is version %s, which has the hole %s in Lua unless its packager has closed it: any user that may run scripts can run any program; update to %s", s.Addr, version, luaHole, fix))
	}
	if old, _ := olderThan(s.Version, triedRedis); old {
		r.add(areaRedis, Warning, fmt.Sprintf("%s is version %s, which the tests do not run on: they need %d.%d", s.Addr,
			version, triedRedis[0], triedRedis[1]))
	}
	r.add(areaRedis, OK, fmt.Sprintf("%s is reachable, version %s%s", s.Addr, version, note))
}

// luaHoleOf reports whether the version of a server has luaHole, and the release to update
// to.
func luaHoleOf(s redisconn.Server) (fix string, hole bool) {
	fixes, version, name, last := fixedRedis, s.Version, "Redis", [2]int{8, 2}
	if s.Valkey != "" {
		fixes, version, name, last = fixedValkey, s.Valkey, "Valkey", [2]int{8, 1}
	}
	var series [2]int
	var patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &series[0], &series[1], &patch); n < 2 {
		return "", false
	}
	if least, ok := fixes[series]; ok {
		return fmt.Sprintf("%s %d.%d.%d", name, series[0], series[1], least), patch < least
	}
	older, _ := olderThan(version, last)
	return fmt.Sprintf("%s %d.%d.%d", name, last[0], last[1], fixes[last]), older
}

// processClients is about the number of connections that a process with all roles may
// open: five clients of 32, and those that wait for messages.
const processClients = 200

// redisClients reports a server that has no connections left for commands beside one process.
func (r *report) redisClients(s redisconn.Server) {
	if n, err := strconv.Atoi(s.MaxClients); err == nil && n < processClients {
		r.add(areaRedis, Warning, fmt.Sprintf(
			"%s accepts %d clients, and one process may open %d: %s, with N = %d per process and some for commands such as audit", s.Addr, n, processClients,
			redisconn.Lasting("maxclients N"), processClients))
	}
}

// redisLosses reports what a crash or a failover may lose: accepted orders that no worker
// has written yet. Their tasks fail, and the audit lists them.
func (r *report) redisLosses(s redisconn.Server) {
	switch {
	case s.AppendOnly == "no":
		r.add(areaRedis, Warning, s.Addr+" keeps no append-only file: after a restart, orders not written yet are lost and gates are rebuilt; "+redisconn.Lasting("appendonly yes"))
	case s.AppendSync == "no":
		r.add(areaRedis, Warning, s.Addr+" leaves the append-only file to its system (appendfsync no): a crash of its machine loses some thirty seconds of orders not written yet; "+redisconn.Lasting("appendfsync everysec")+", and with always none are lost")
	case s.AppendSync == "everysec":
		r.add(areaRedis, OK, s.Addr+" saves every second: a crash of its machine loses up to two seconds of orders not written yet; with appendfsync always it loses none")
	case s.AppendSync == "always":
		r.add(areaRedis, OK, s.Addr+" saves every write before it answers")
	}
	if n, err := strconv.Atoi(s.Replicas); err == nil && n > 0 && s.MinWrite == "0" {
		r.add(areaRedis, Warning, fmt.Sprintf(
			"%s has %d replicas and accepts writes without them (min-replicas-to-write 0): a failover loses what an isolated master accepts; %s, and min-replicas-max-lag 10 to bound the loss to ten seconds", s.Addr, n,
			redisconn.Lasting("min-replicas-to-write 1")))
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
