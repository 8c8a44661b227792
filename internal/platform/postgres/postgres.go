// Package postgres opens the database: Postgres in production, SQLite for the embedded
// demo, both behind ent's client.
//
// It owns the behaviour of connections (deadlines on every read, server-side timeouts),
// the retries of transactions, the meaning of SQLSTATE codes, and the execution of
// migrations. It owns no table and knows no domain.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/lib/pq"

	"seckill/ent"
	"seckill/internal/platform/priority"
)

// Bounds of a connection and its pool.
const (
	defaultPort      = "5432"
	defaultMaxConns  = 16                      // per process; Postgres's default limit is 100 in total
	connMaxIdle      = 5 * time.Minute         // idle connections are closed after a peak
	connMaxLifetime  = time.Hour               // so that a failover or a new address takes effect eventually
	maxDials         = 4                       // at a time and process: after an outage all processes connect at once
	statementTimeout = 2 * time.Second         // the slowest statement takes milliseconds
	lockTimeout      = 1500 * time.Millisecond // longer than deadlock_timeout of the server (1 s)
	idleInTxTimeout  = 5 * time.Second         // releases the locks of a process that stopped inside a transaction
	replyMargin      = 2 * time.Second         // how long after its own timeout the server may take to reply
	migrationTimeout = 10 * time.Minute
)

// DB is an open database.
type DB struct {
	SQL     *sql.DB
	Ent     *ent.Client
	Dialect string // dialect.Postgres or dialect.SQLite

	options   Options // Postgres only: Migrate opens its own connections
	reserve   *sql.DB // Postgres only: connections for urgent work
	temporary string  // SQLite only: directory that Close removes, or ""
	looks     looks   // questions of AnyRows
}

// Options configure a Postgres database.
type Options struct {
	// URL is postgres://user@host:port/name?sslmode=…, or lib/pq's key=value form. Without
	// sslmode it is encrypted (require), see SaysSSLMode. Several
	// hosts are tried in their order, with target_session_attrs=read-write until one takes
	// writes; host=/directory is a Unix socket. The
	// parameters statement_timeout, lock_timeout and
	// idle_in_transaction_session_timeout, in milliseconds, override the defaults of 2
	// s, 1.5 s and 5 s.
	URL      string
	MaxConns int // maximum connections of this process, without priority.ReserveConns; 0 = 16
	// TransactionPooling says that the URL leads to a pooler in transaction mode, such as
	// PgBouncer. Every statement is then one round trip without a prepared name, and the
	// timeouts are not sent, because a pooler refuses them: the role sets them.
	TransactionPooling bool
}

// Open connects to Postgres and pings it.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	s, err := sessionOf(o.URL)
	if err != nil {
		return nil, err
	}
	pool, pooled, err := openPool(o, s)
	if err != nil {
		return nil, err
	}
	keep(pool, o.MaxConns)
	if err := pool.PingContext(ctx); err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	if pooled != nil && pooled.needed.Load() && o.MaxConns > 1 {
		if err := onlySessions(ctx, pool); err != nil {
			_ = pool.Close()
			return nil, err
		}
	}
	reserve, _, err := openPool(o, s)
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	keep(reserve, priority.ReserveConns)
	return newDB(dialect.Postgres, pool, withReserve(pool, reserve), &DB{options: o, reserve: reserve}), nil
}

// keep bounds a pool to n connections. Fewer idle ones would open and close connections
// during a peak.
func keep(pool *sql.DB, n int) {
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	pool.SetConnMaxIdleTime(connMaxIdle)
	pool.SetConnMaxLifetime(connMaxLifetime)
}

func newDB(name string, pool *sql.DB, driver dialect.Driver, db *DB) *DB {
	db.SQL, db.Dialect, db.looks = pool, name, newLooks()
	db.Ent = ent.NewClient(ent.Driver(driver))
	return db
}

// Close closes all connections, and removes a temporary SQLite file.
func (db *DB) Close() error {
	err := db.SQL.Close()
	if db.reserve != nil {
		err = errors.Join(err, db.reserve.Close())
	}
	if db.temporary != "" {
		if rmErr := os.RemoveAll(db.temporary); err == nil {
			err = rmErr
		}
	}
	return err
}

// session is the set of server-side timeouts of one connection.
type session struct {
	statement, lock, idleInTx time.Duration
}

// sessionOf returns the timeouts in a URL, and the defaults for the others.
func sessionOf(address string) (session, error) {
	s := session{statement: statementTimeout, lock: lockTimeout, idleInTx: idleInTxTimeout}
	cfg, err := configOf(address)
	if err != nil {
		return s, fmt.Errorf("database url: %w", err)
	}
	for name, field := range s.parameters() {
		text, set := cfg.Runtime[name]
		if !set {
			continue
		}
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return s, fmt.Errorf("database url: %s=%s: must be a number of milliseconds above 0", name, text)
		}
		*field = time.Duration(ms) * time.Millisecond
	}
	return s, nil
}

// configOf parses a URL or key=value form. lib/pq takes several hosts as parameters only,
// not as in libpq's postgres://user@host1:5432,host2:5432/name, so that they become
// parameters here.
func configOf(raw string) (pq.Config, error) {
	cfg, err := parse(raw)
	if _, ok := errors.AsType[*url.Error](err); ok {
		err = errors.New("malformed") // the text of the error contains the password
	}
	if err == nil && !SaysSSLMode(raw) && (cfg.SSLMode == "" || cfg.SSLMode == pq.SSLModePrefer) {
		cfg.SSLMode = pq.SSLModeRequire // the next lib/pq takes prefer, which sends passwords in plain text when TLS fails
	}
	return cfg, err
}

// keyedSSLMode finds sslmode in the key=value form of an address.
var keyedSSLMode = regexp.MustCompile(`(^|\s)sslmode\s*=`)

// SaysSSLMode reports whether an address, or PGSSLMODE, says how the connection is
// encrypted.
func SaysSSLMode(raw string) bool {
	if os.Getenv("PGSSLMODE") != "" {
		return true
	}
	_, rest, isURL := strings.Cut(raw, "://")
	if !isURL {
		return keyedSSLMode.MatchString(raw)
	}
	_, query, _ := strings.Cut(rest, "?") // url.Parse refuses several hosts with ports
	values, err := url.ParseQuery(query)
	return err == nil && values.Has("sslmode")
}

// SSLMode returns how the connections of an address are encrypted, "" for an address that
// cannot be parsed.
func SSLMode(raw string) string {
	cfg, err := configOf(raw)
	if err != nil {
		return ""
	}
	return string(cfg.SSLMode)
}

func parse(raw string) (pq.Config, error) {
	scheme, rest, isURL := strings.Cut(raw, "://")
	end := strings.IndexAny(rest, "/?")
	if !isURL || end < 0 || !strings.Contains(rest[:end], ",") {
		return pq.NewConfig(raw)
	}
	user, list := "", rest[:end]
	if at := strings.LastIndexByte(list, '@'); at >= 0 {
		user, list = list[:at+1], list[at+1:]
	}
	var hosts, ports []string
	for address := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = strings.Trim(address, "[]"), defaultPort
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	u, err := url.Parse(scheme + "://" + user + rest[end:])
	if err != nil {
		return pq.Config{}, err
	}
	q := u.Query()
	q.Set("host", strings.Join(hosts, ","))
	q.Set("port", strings.Join(ports, ","))
	u.RawQuery = q.Encode()
	return pq.NewConfig(u.String())
}

// parameters returns the timeouts by the names of their server parameters.
func (s *session) parameters() map[string]*time.Duration {
	return map[string]*time.Duration{
		"statement_timeout":                   &s.statement,
		"lock_timeout":                        &s.lock,
		"idle_in_transaction_session_timeout": &s.idleInTx,
	}
}

// openPool returns a pool on lib/pq. It does not connect yet.
//
// It does not set lc_messages, although ent detects constraint errors by their English
// text, because only a superuser may set it. Errors are identified by SQLSTATE instead,
// see IsUnique.
func openPool(o Options, s session) (*sql.DB, *pooledStart, error) {
	cfg, err := configOf(o.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("database url: %w", err)
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = applicationName(o.TransactionPooling)
	}
	if cfg.Runtime == nil {
		cfg.Runtime = map[string]string{}
	}
	for name, d := range s.parameters() {
		cfg.Runtime[name] = strconv.FormatInt(d.Milliseconds(), 10)
		if o.TransactionPooling {
			delete(cfg.Runtime, name)
		}
	}
	var pooled *pooledStart
	if !o.TransactionPooling {
		if pooled, err = startPooled(cfg, s); err != nil {
			return nil, nil, err
		}
	}
	if o.TransactionPooling {
		// otherwise a statement is two round trips, between which the pooler may change the server
		cfg.BinaryParameters = true
	}
	c, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("database url: %w", err)
	}
	c.Dialer(dialer{silence: s.statement + replyMargin})
	return sql.OpenDB(connector{Connector: c, pooled: pooled, keepsState: !o.TransactionPooling,
		dials: make(chan struct{}, maxDials)}), pooled, nil
}

// Application begins the name of all processes at the server.
const Application = "seckill"

// maxApplicationName bounds a name in bytes; Postgres cuts longer ones.
const maxApplicationName = 63

// applicationName names this process, so that the processes of an installation can be counted. A
// pooler in transaction mode would set the name again for each of its clients.
func applicationName(pooled bool) string {
	if pooled {
		return Application
	}
	host, _ := os.Hostname() // "" when the system has none
	pid := "/" + strconv.Itoa(os.Getpid())
	return Application + " " + host[:min(len(host), maxApplicationName-len(Application)-1-len(pid))] + pid
}

// Processes returns the number of processes that are connected to this database beside this one, as
// far as their connections have the names that Open gives them.
func (db *DB) Processes(ctx context.Context) (n int, err error) {
	err = db.SQL.QueryRowContext(ctx, `SELECT count(DISTINCT application_name) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE $1 AND application_name <> current_setting('application_name')`,
		Application+" %").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count processes: %w", err)
	}
	return n, nil
}

// startPooled returns what opens connections where the timeouts are refused at the start.
func startPooled(cfg pq.Config, s session) (*pooledStart, error) {
	cfg.Runtime = maps.Clone(cfg.Runtime)
	var statements []string
	for name := range s.parameters() {
		statements = append(statements, "SET "+name+" = "+cfg.Runtime[name])
		delete(cfg.Runtime, name)
	}
	c, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	c.Dialer(dialer{silence: s.statement + replyMargin})
	return &pooledStart{Connector: c, timeouts: strings.Join(statements, "; ")}, nil
}
