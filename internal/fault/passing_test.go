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

	"seckill/internal/fault"
)

func TestPassingErrorsSpeakOfTheServiceAlone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		fault.New(fault.Unavailable, ""), fault.New(fault.Timeout, ""), fault.New(fault.Overloaded, ""), fault.New(fault.RateLimited, ""),
		context.DeadlineExceeded, context.Canceled, driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		&pq.Error{Code: "08006"}, &pq.Error{Code: "40001"}, &pq.Error{Code: "53300"}, &pq.Error{Code: "55P03"}, &pq.Error{Code: "57P01"}, &pq.Error{Code: "58030"},
	} {
		if !fault.Passing(err) || !fault.Passing(fmt.Errorf("read session: %w", err)) {
			t.Errorf("%v does not count as passing", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("bug"), fault.New(fault.Internal, ""), fault.New(fault.BadInput, ""), fault.New(fault.NotFound, ""),
		&pq.Error{Code: "23505"}, &pq.Error{Code: "42P01"}, &pq.Error{Code: "0800"}, &pq.Error{},
	} {
		if fault.Passing(err) {
			t.Errorf("%v counts as passing", err)
		}
	}
}
