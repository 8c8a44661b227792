package fault

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// sqlTransient lists the SQLSTATE classes that concern the server and not the statement:
// connection, authorisation, no such database, transaction rollback, resources, object in
// use, operator intervention, system error.
const sqlTransient = "08 28 3D 40 53 55 57 58"

// sqlStandby lists states of a server that is not the primary: it refuses to begin a
// transaction that may write (0A000), and to write (25006). 25P03 and 25P04 end the
// connections of transactions that exceeded a timeout.
const sqlStandby = "0A000 25006 25P03 25P04"

// redisTransient lists the prefixes of Redis errors about the server and not the command:
// loading its data, out of memory, persistence failing, a replica, a script running, the
// slot moved to another node of the Cluster, or a password or right that operators have
// changed.
var redisTransient = []string{
	"NOAUTH ", "WRONGPASS ", "NOPERM ", "LOADING ", "OOM ", "MISCONF ", "READONLY ", "MASTERDOWN ", "NOREPLICAS ", "BUSY ",
	"ERR max number of clients",
	"CLUSTERDOWN ", "TRYAGAIN ", "MOVED ", "ASK ",
}

// redisBusy is the text of the Redis client's error for a connection pool timeout.
const redisBusy = "redis: connection pool timeout"

// IsTransient reports whether an error is transient: a service is unreachable or busy, and a
// retry may succeed. It recognises faults with such a code and the errors of the service
// clients: deadlines, connections, SQLSTATE classes, Redis errors about the server's own
// state.
func IsTransient(err error) bool {
	if f, ok := errors.AsType[*Error](err); ok {
		switch f.Code {
		case Unavailable, Timeout, Overloaded, RateLimited:
			return true
		case Unauthenticated, Forbidden, BadInput, NotFound, Internal:
		}
	}
	for _, away := range []error{
		context.DeadlineExceeded, context.Canceled, driver.ErrBadConn, net.ErrClosed, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if s, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		state := s.SQLState()
		return len(state) == 5 && (strings.Contains(sqlTransient, state[:2]) || strings.Contains(sqlStandby, state))
	}
	if r, ok := errors.AsType[interface {
		error
		RedisError()
	}](err); ok {
		return slices.ContainsFunc(redisTransient, func(begin string) bool { return strings.HasPrefix(r.Error(), begin) })
	}
	return err != nil && strings.HasSuffix(err.Error(), redisBusy)
}
