package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/priority"
)

const (
	areaPostgres = "postgres"
	areaClock    = "clock"
	// minPostgres is the oldest version, as server_version_num, that the tests run on or that is still served.
	minPostgres = 130000
	// commandConns are the connections that commands such as audit need beside the processes.
	commandConns = 5
)

func (r *report) postgres(ctx context.Context, d Deps) {
	if d.Config.DatabaseURL == "" || d.Config.DatabaseURL.Misleads() {
		return // reported by the settings check
	}
	r.encryption(d.Config.DatabaseURL.Reveal())
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	pooled := d.Config.DatabasePooling == config.PoolingTransaction
	db, err := postgres.Open(ctx, postgres.Options{
		URL: d.Config.DatabaseURL.Reveal(), MaxConns: 2, TransactionPooling: pooled,
	})
	if err != nil {
		r.add(areaPostgres, Error, postgresAway(d.Config, err).finding())
		return
	}
	defer func() { _ = db.Close() }()
	r.server(ctx, db, d.Config)
	r.standbys(ctx, db)
	r.pooling(ctx, db, pooled)
	r.migrations(ctx, db)
	r.postgresClock(ctx, db, d)
}

// encryption checks that the address says how the connection is encrypted.
func (r *report) encryption(address string) {
	switch mode := postgres.SSLMode(address); {
	case mode == "allow" || mode == "prefer":
		r.add(areaPostgres, Warning, "is reached with sslmode="+mode+
			", which sends passwords in plain text when TLS fails or is suppressed; write require, verify-full, or disable where the network is private")
	case !postgres.SaysSSLMode(address) && mode == "require":
		r.add(areaPostgres, Warning, "is reached by an address that does not say how it is encrypted: it is taken as ?sslmode=require, whose certificate is not checked; write that, verify-full with ?sslrootcert=FILE, or disable where the network is private")
	}
}

// server checks the version and the settings required for durability.
func (r *report) server(ctx context.Context, db *postgres.DB, cfg *config.Config) {
	names := []string{
		"server_version", "server_version_num", "fsync", "synchronous_commit", "synchronous_standby_names",
		"full_page_writes",
		"default_transaction_read_only", "transaction_read_only", "max_connections", "superuser_reserved_connections",
	}
	values := map[string]string{}
	for _, name := range names {
		var value string
		if err := db.SQL.QueryRowContext(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			r.add(areaPostgres, Error, fmt.Sprintf("does not report %s: %v", name, err))
			return
		}
		values[name] = value
	}
	unsafe := Warning
	if cfg.Production() {
		unsafe = Error
	}
	number, _ := strconv.Atoi(values["server_version_num"])
	if number < minPostgres {
		r.add(areaPostgres, Error, fmt.Sprintf("is version %s: at least %d is needed", values["server_version"],
			minPostgres/10000))
	} else {
		r.add(areaPostgres, OK, "reachable, version "+values["server_version"])
	}
	for _, c := range []struct {
		bad     bool
		level   Level
		message string
	}{
		{values["fsync"] == "off", unsafe, "fsync is off: a power cut destroys the record of orders; set fsync = on"},
		{values["full_page_writes"] == "off", Warning,
			"full_page_writes is off: a power cut may tear pages; set full_page_writes = on"},
		{
			values["synchronous_commit"] == "off", Error,
			"synchronous_commit is off: a crash loses orders that were confirmed to buyers; set synchronous_commit = on",
		},
		{
			values["synchronous_commit"] == "local" && values["synchronous_standby_names"] != "", Warning,
			"synchronous_commit is local: commits do not wait for the standbys of synchronous_standby_names; set synchronous_commit = on",
		},
		{
			values["default_transaction_read_only"] == "on" || values["transaction_read_only"] == "on", Error,
			"takes no writes: it is a replica or set to read-only; give the address of the primary",
		},
	} {
		if c.bad {
			r.add(areaPostgres, c.level, c.message)
		}
	}
	r.connections(ctx, db, cfg, values)
}

// connections compares max_connections with what the processes may open.
func (r *report) connections(ctx context.Context, db *postgres.DB, cfg *config.Config, values map[string]string) {
	most, err := strconv.Atoi(values["max_connections"])
	if err != nil {
		return
	}
	running, now := 0, "; how many run cannot be counted behind a pooler in transaction mode"
	if cfg.DatabasePooling != config.PoolingTransaction {
		if running, err = db.Processes(ctx); err != nil {
			r.add(areaPostgres, Warning, fmt.Sprintf("does not report its connections: %v", err))
			return
		}
		now = fmt.Sprintf("; %d run now", running)
	}
	reserved, _ := strconv.Atoi(values["superuser_reserved_connections"])
	each, left := cfg.DatabasePool+priority.ReserveConns, most-reserved-commandConns
	switch fit := left / each; {
	case fit == 0:
		r.add(areaPostgres, Warning, fmt.Sprintf(
			"max_connections is %d, of which %d are for superusers; one process may open %d, and commands such as audit need %d: lower SECKILL_DATABASE_POOL or raise it", most, reserved, each, commandConns))
	case running > fit:
		r.add(areaPostgres, Warning, fmt.Sprintf(
			"max_connections is %d: %d processes run, and with up to %d connections each (SECKILL_DATABASE_POOL and %d) they may open %d; raise it to %d, lower the setting to %d, or put a pooler between", most,
			running, each, priority.ReserveConns, running*each, running*each+reserved+commandConns,
			max(2, left/running-priority.ReserveConns)))
	default:
		r.add(areaPostgres, OK, fmt.Sprintf(
			"max_connections is %d: enough for %d processes with up to %d connections each (SECKILL_DATABASE_POOL and %d), and for commands%s. For more, raise it or lower the setting",
			most, fit, each, priority.ReserveConns, now))
	}
}

// standbys reports what a failover to a standby may lose.
func (r *report) standbys(ctx context.Context, db *postgres.DB) {
	var (
		named                 string
		asynchronous, unknown int
		lag                   float64 // s
	)
	err := db.SQL.QueryRowContext(ctx, `SELECT current_setting('synchronous_standby_names'),
		count(*) FILTER (WHERE sync_state IN ('async', 'potential')), count(*) FILTER (WHERE sync_state IS NULL),
		coalesce(max(extract(epoch FROM replay_lag)), 0)::float8
		FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'`).Scan(&named, &asynchronous, &unknown, &lag)
	switch {
	case err != nil:
		r.add(areaPostgres, Warning, fmt.Sprintf("does not report its standbys: %v", err))
	case unknown > 0:
		r.add(areaPostgres, Warning, fmt.Sprintf(
			"has %d standbys, and does not show this role whether they are synchronous: GRANT pg_monitor", unknown))
	case asynchronous > 0 && named == "":
		r.add(areaPostgres, Warning, fmt.Sprintf(
			"has %d asynchronous standbys, up to %.1f s behind: a failover to one loses what it has not received, "+
				"which takes orders from their buyers; set synchronous_standby_names, for example to ANY 1 (*)", asynchronous, lag))
	case asynchronous > 0:
		r.add(areaPostgres, Warning, fmt.Sprintf(
			"has %d standbys that are not synchronous, up to %.1f s behind, beside those of synchronous_standby_names: "+
				"promote one of these only", asynchronous, lag))
	case named != "":
		r.add(areaPostgres, OK, "waits for synchronous standbys: a failover to one loses nothing")
	}
}

// pooling checks that the setting says what the address leads to.
func (r *report) pooling(ctx context.Context, db *postgres.DB, pooled bool) {
	shares, err := db.SharesServers(ctx)
	if err != nil {
		r.add(areaPostgres, Error, fmt.Sprintf("cannot be checked for a pooler: %v", err))
		return
	}
	if shares && !pooled {
		r.add(areaPostgres, Error, "is reached through a pooler in transaction mode, which mixes up the statements of several connections; "+
			"set SECKILL_DATABASE_POOLING=transaction, or the pooler to session mode")
	}
	if !pooled {
		return
	}
	var timeout string
	if err := db.SQL.QueryRowContext(ctx, "SELECT current_setting('statement_timeout')").Scan(&timeout); err != nil {
		r.add(areaPostgres, Error, fmt.Sprintf("does not return statement_timeout: %v", err))
		return
	}
	if timeout == "0" {
		r.add(areaPostgres, Warning, "sets no statement_timeout, which SECKILL_DATABASE_POOLING=transaction leaves to the role: "+
			"ALTER ROLE … SET statement_timeout = '2s', lock_timeout = '1.5s' and idle_in_transaction_session_timeout = '5s'")
	}
}

func (r *report) migrations(ctx context.Context, db *postgres.DB) {
	all, err := db.MigrationStatus(ctx)
	if err != nil {
		r.add(areaPostgres, Error, fmt.Sprintf("does not report its migrations: %v", err))
		return
	}
	var missing []string
	for _, m := range all {
		if !m.Applied {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) > 0 {
		r.add(areaPostgres, Error, fmt.Sprintf("%d of %d migrations are not applied (%s): run `seckill migrate up`",
			len(missing), len(all), strings.Join(missing, ", ")))
		return
	}
	newer, err := db.NewerMigrations(ctx)
	switch {
	case err != nil:
		r.add(areaPostgres, Error, fmt.Sprintf("does not report its migrations: %v", err))
	case newer > 0:
		r.add(areaPostgres, Warning, fmt.Sprintf(
			"has %d migrations of a newer release: replace this binary by that release; it works until then", newer))
	default:
		r.add(areaPostgres, OK, fmt.Sprintf("all %d migrations are applied", len(all)))
	}
}

func (r *report) postgresClock(ctx context.Context, db *postgres.DB, d Deps) {
	before := d.Clock.Now()
	var now time.Time
	if err := db.SQL.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		r.add(areaClock, Error, fmt.Sprintf("postgres does not report the time: %v", err))
		return
	}
	r.skew("postgres", now, before, d.Clock.Now())
}

// skew compares a server's clock with the local one. The server read its clock at some
// time between before and after.
func (r *report) skew(who string, now, before, after time.Time) {
	var off time.Duration
	switch {
	case now.Before(before):
		off = now.Sub(before)
	case now.After(after):
		off = now.Sub(after)
	}
	off = off.Round(time.Millisecond)
	if off.Abs() > maxSkew {
		r.add(areaClock, Error, fmt.Sprintf("%s is %s off this host: sales would open and close at the wrong second; run NTP on both", who, off))
		return
	}
	r.add(areaClock, OK, fmt.Sprintf("%s agrees with this host within %s", who, maxSkew))
}
