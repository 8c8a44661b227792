package postgres

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// IsUnique reports whether a statement violated a unique index or a primary key. Use it
// instead of ent's IsConstraintError, which matches the English text of the message and
// fails on servers with another language.
func IsUnique(err error) bool {
	if pq.As(err, pqerror.UniqueViolation) != nil {
		return true
	}
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// Retryable reports whether the database aborted a transaction in favour of another
// one, so that it can be run again: serialization failure, deadlock, or a SQLite file
// that another process was writing to. It also reports true after a stale prepared
// statement was removed.
func Retryable(err error) bool {
	if pq.As(err, pqerror.TRSerializationFailure, pqerror.TRDeadlockDetected) != nil || isStale(err) {
		return true
	}
	primary := sqliteCode(err) & 0xff // the rest of an extended code is only detail
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// IsRefusal reports whether Postgres rejected a statement as such and not its values:
// class 42, a missing permission, table or column. Every statement of that text fails
// until an operator repairs the server.
func IsRefusal(err error) bool {
	e := pq.As(err)
	return e != nil && e.Code.Class() == pqerror.ClassSyntaxErrorOrAccessRuleViolation
}

// IsUnsupported reports whether Postgres does not have, or does not permit, a function:
// class 42, or class 0A.
func IsUnsupported(err error) bool {
	e := pq.As(err)
	return IsRefusal(err) || e != nil && e.Code.Class() == pqerror.ClassFeatureNotSupported
}

// isIntegrity reports whether a constraint was violated; a deferred one is checked at
// commit.
func isIntegrity(err error) bool {
	if e := pq.As(err); e != nil {
		return e.Code.Class() == pqerror.ClassIntegrityConstraintViolation
	}
	return sqliteCode(err)&0xff == sqlite3.SQLITE_CONSTRAINT
}

// sqliteCode returns the extended result code of a SQLite error, 0 for any other error.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// Hint returns how an operator can resolve an error of Open.
func Hint(err error) string {
	if state, ok := errors.AsType[*pq.Error](err); ok {
		return hintOf(string(state.Code))
	}
	text := err.Error()
	switch {
	case errors.Is(err, errTransactions):
		return "set SECKILL_DATABASE_POOLING=transaction, or the pooler to session mode"
	case errors.Is(err, context.Canceled):
		return "it was interrupted: start it again"
	case errors.Is(err, pq.ErrSSLNotSupported):
		return "put ?sslmode=disable behind the address where the way to it is private, else switch TLS on at the server"
	case strings.Contains(text, "x509: ") || strings.Contains(text, "tls: "):
		return "its certificate is not trusted: give the one that signed it with ?sslrootcert=FILE"
	case strings.Contains(text, "no such host"):
		return "there is no host of that name: put the address right"
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return "nothing answers there: see to the network and its firewalls, or put the address right"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "start Postgres there, or put the address right"
	}
	return "put the address right: postgres://user:password@host:5432/seckill?sslmode=require"
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

func hintOf(state string) string {
	switch {
	case state == "3D000":
		return "make that database with createdb, or name another behind the port"
	case strings.HasPrefix(state, "28"):
		return "put user and password right, or let that user in by pg_hba.conf"
	case state == "42501":
		return "grant that user the right to connect, or name another"
	case state == "53300":
		return "raise max_connections, or lower SECKILL_DATABASE_POOL"
	case state == "08P01": // "unsupported startup parameter: search_path"
		return "a pooler refuses that parameter of the address: leave it out, or add it to ignore_startup_parameters of PgBouncer"
	case strings.HasPrefix(state, "57P"):
		return "wait until it has started, and try again"
	}
	return "see to the server, whose log says more, or name another"
}
