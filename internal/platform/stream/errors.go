package stream

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"seckill/internal/platform/fault"
)

// Permanent marks an error that no retry can resolve: the message becomes a dead
// letter.
func Permanent(err error) error { return &classifiedError{permanent: true, err: err} }

// IsPermanent reports whether an error was marked Permanent.
func IsPermanent(err error) bool {
	v, ok := errors.AsType[*classifiedError](err)
	return ok && v.permanent
}

// Retryable marks an error that is independent of the message: a service is
// unavailable, a lock was not free. The message is retried without limit.
func Retryable(err error) error { return &classifiedError{err: err} }

type classifiedError struct {
	permanent bool
	err       error
}

// Error returns the text of the cause.
func (v *classifiedError) Error() string { return v.err.Error() }

func (v *classifiedError) Unwrap() error { return v.err }

// IsRetryable reports whether an error was marked Retryable or by itself means that a
// service is unavailable or busy. Packages that know more such errors mark them.
func IsRetryable(err error) bool {
	if v, ok := errors.AsType[*classifiedError](err); ok {
		return !v.permanent
	}
	return fault.IsTransient(err)
}

// maxReason bounds the text of an error in logs and dead letters, in bytes.
const maxReason = 300

// panicError is a panic of a handler without parts that may contain a payload: it has
// the type of the value, and its text only for a runtime error.
type panicError struct {
	text  string
	stack string
}

// Error returns the text without the stack.
func (p *panicError) Error() string { return p.text }

// redactPanic replaces a panic caught by watermill's Recoverer, whose text is the panic
// value and a stack, by an error that may be logged and stored.
func redactPanic(err error) error {
	p, ok := errors.AsType[middleware.RecoveredPanicError](err)
	if !ok {
		return err
	}
	text := fmt.Sprintf("panic with a %T", p.V)
	if r, ok := p.V.(runtime.Error); ok {
		text = "panic: " + r.Error()
	}
	return &panicError{text: text, stack: p.Stacktrace}
}

// reasonOf returns the text of an error for logs and dead letters.
func reasonOf(err error) string { return fault.Shorten(redactPanic(err).Error(), maxReason) }
