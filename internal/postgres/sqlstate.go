package postgres

import (
	"errors"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// IsUnique reports whether a statement broke a unique index or a primary key.
// It is the way to ask: ent's IsConstraintError reads the English text of the
// message, which the server may say in another language.
func IsUnique(err error) bool {
	if pq.As(err, pqerror.UniqueViolation) != nil {
		return true
	}
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// Retryable reports whether the database gave a transaction up for the sake of
// another one, so that running it again is right: serialization failure,
// deadlock, or a SQLite file that another process was writing to. So it is when a
// kept statement had to be forgotten.
func Retryable(err error) bool {
	if pq.As(err, pqerror.TRSerializationFailure, pqerror.TRDeadlockDetected) != nil || isStale(err) {
		return true
	}
	primary := sqliteCode(err) & 0xff // the rest of an extended code only says where
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// IsRefusal reports whether Postgres refused a statement as such and not its values:
// class 42, a missing permission, table or column. Every statement of that text fails
// until the server is mended.
func IsRefusal(err error) bool {
	e := pq.As(err)
	return e != nil && e.Code.Class() == pqerror.ClassSyntaxErrorOrAccessRuleViolation
}

// isIntegrity reports a broken constraint, which a deferred one is at commit.
func isIntegrity(err error) bool {
	if e := pq.As(err); e != nil {
		return e.Code.Class() == pqerror.ClassIntegrityConstraintViolation
	}
	return sqliteCode(err)&0xff == sqlite3.SQLITE_CONSTRAINT
}

// sqliteCode returns the extended result code of a SQLite error, 0 when it is none.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}
