package postgres

import (
	"context"
	"database/sql"
	"errors"
)

// errTransactions is the error of a pooler in transaction mode that Options do not name.
var errTransactions = errors.New("a pooler in transaction mode, which mixes up the statements of several connections")

// onlySessions returns an error for a pooler in transaction mode.
func onlySessions(ctx context.Context, pool *sql.DB) error {
	shares, err := (&DB{SQL: pool}).SharesServers(ctx)
	if err == nil && shares {
		err = errTransactions
	}
	return err
}

// sharingTries bounds the attempts to see two connections on one server process.
const sharingTries = 20

// SharesServers reports whether two open connections have reached the same server
// process, as behind a pooler in transaction mode. It needs two connections of the pool.
// A busy pooler may escape notice, because it has other servers to give.
func (db *DB) SharesServers(ctx context.Context) (bool, error) {
	first, err := db.SQL.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer first.Close()
	second, err := db.SQL.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer second.Close()
	for range sharingTries {
		a, err := serverProcess(ctx, first)
		if err != nil {
			return false, err
		}
		b, err := serverProcess(ctx, second)
		if err != nil || a == b {
			return a == b, err
		}
	}
	return false, nil
}

// serverProcess returns the process id of the server that answers a connection. The
// statement has no parameters, and thus passes every pooler in one piece.
func serverProcess(ctx context.Context, c *sql.Conn) (pid int, err error) {
	err = c.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}
