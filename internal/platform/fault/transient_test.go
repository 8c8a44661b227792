package fault_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/lib/pq"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/fault"
)

// answer is an error reply of Redis.
type answer string

func (a answer) Error() string { return string(a) }

// RedisError marks the type as go-redis does.
func (answer) RedisError() {}

func TestTransientErrorsSpeakOfTheServiceAlone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		fault.New(fault.Unavailable, ""), fault.New(fault.Timeout, ""), fault.New(fault.Overloaded, ""), fault.New(fault.RateLimited, ""),
		context.DeadlineExceeded, context.Canceled, driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		&pq.Error{Code: "08006"}, &pq.Error{Code: "40001"}, &pq.Error{Code: "53300"}, &pq.Error{Code: "55P03"}, &pq.Error{Code: "57P01"}, &pq.Error{Code: "58030"},
		&pq.Error{Code: "0A000"}, &pq.Error{Code: "25006"}, &pq.Error{Code: "25P03"}, // a standby before its promotion; a transaction that exceeded a timeout
		&pq.Error{Code: "28P01"}, &pq.Error{Code: "3D000"}, // a password during its change; a database during its restore
		answer("LOADING Redis is loading the dataset in memory"), answer("OOM command not allowed when used memory > 'maxmemory'."),
		answer("READONLY You can't write against a read only replica."), answer("MOVED 3999 127.0.0.1:6381"),
		answer("WRONGPASS invalid username-password pair or user is disabled."), answer("NOAUTH Authentication required."),
		answer("NOPERM User shop has no permissions to run the 'hmget' command"), // a password or a right during its change
		redis.ErrPoolTimeout,
	} {
		if !fault.IsTransient(err) || !fault.IsTransient(fmt.Errorf("read session: %w", err)) {
			t.Errorf("%v does not count as transient", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("bug"), fault.New(fault.Internal, ""), fault.New(fault.BadInput, ""), fault.New(fault.NotFound, ""),
		&pq.Error{Code: "23505"}, &pq.Error{Code: "42P01"}, &pq.Error{Code: "0800"}, &pq.Error{}, &pq.Error{Code: "25001"},
		answer("WRONGTYPE Operation against a key holding the wrong kind of value"), answer("ERR unknown command 'OOM '"), redis.Nil,
	} {
		if fault.IsTransient(err) {
			t.Errorf("%v counts as transient", err)
		}
	}
}
