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

// sqlPassing lists the classes of SQLSTATE that speak of the server, not of the
// statement: connection, who may connect, no such database, rolled back for
// another's sake, resources, object in use, operator intervention, system error.
const sqlPassing = "08 28 3D 40 53 55 57 58"

// sqlStandby lists states of a server that is not the primary, or not yet: it
// refuses to begin a transaction that may write (0A000), and to write (25006). 25P03
// and 25P04 end the connections of transactions that took too long.
const sqlStandby = "0A000 25006 25P03 25P04"

// redisPassing lists how Redis begins an answer about itself, not about the
// command: it reads its file, is full, cannot write its file, is a replica, runs a
// script, or has given the slot to another node of the Cluster.
var redisPassing = []string{
	"LOADING ", "OOM ", "MISCONF ", "READONLY ", "MASTERDOWN ", "NOREPLICAS ", "BUSY ", "ERR max number of clients",
	"CLUSTERDOWN ", "TRYAGAIN ", "MOVED ", "ASK ",
}

// redisBusy is how the client of Redis words that no connection came free in time.
const redisBusy = "redis: connection pool timeout"

// Passing reports whether an error says nothing about what was asked for: a
// service is away or busy, and the same may well succeed later. It knows faults of
// that kind and what every client of a service gives then: deadlines, connections,
// classes of SQLSTATE, what Redis says of its own condition.
func Passing(err error) bool {
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
		return len(state) == 5 && (strings.Contains(sqlPassing, state[:2]) || strings.Contains(sqlStandby, state))
	}
	if r, ok := errors.AsType[interface {
		error
		RedisError()
	}](err); ok {
		return slices.ContainsFunc(redisPassing, func(begin string) bool { return strings.HasPrefix(r.Error(), begin) })
	}
	return err != nil && strings.HasSuffix(err.Error(), redisBusy)
}
