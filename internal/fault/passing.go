package fault

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
)

// sqlPassing lists the classes of SQLSTATE that speak of the server, not of the
// statement: connection, rolled back for another's sake, resources, object in
// use, operator intervention, system error.
const sqlPassing = "08 40 53 55 57 58"

// Passing reports whether an error says nothing about what was asked for: a
// service is away or busy, and the same may well succeed later. It knows faults of
// that kind and what every client of a service gives then: deadlines, connections,
// classes of SQLSTATE.
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
		return len(state) == 5 && strings.Contains(sqlPassing, state[:2])
	}
	return false
}
