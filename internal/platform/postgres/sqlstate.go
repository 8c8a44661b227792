package postgres

import (
	"errors"

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
