// Package fault tells apart the two ways a request can fail.
//
// A Refusal is an outcome: sold out, wrong captcha, sale not begun. It is a
// value that a use case returns beside its result, never an error, and reaches
// the client in the payload's userErrors. The types that carry details live in
// the domains that know them.
//
// A Fault is an error: nobody signed in, a service down, a bug. It carries one
// of about ten codes, and reaches the client in the top-level errors list. An
// error without a code is UNAVAILABLE when it says by itself that a service is
// away (Passing), and else INTERNAL: the client learns an error id and no more.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code is the reason of a fault, as clients see it in extensions.code.
type Code string

// Fault codes.
const (
	Unauthenticated Code = "UNAUTHENTICATED" // nobody is signed in, or the token is not good
	Forbidden       Code = "FORBIDDEN"       // the role is too low
	BadInput        Code = "BAD_USER_INPUT"  // input that no userErrors list can carry
	NotFound        Code = "NOT_FOUND"       // nothing visible to the caller has that id
	RateLimited     Code = "RATE_LIMITED"    // too many tries; RetryAfter says when to come back
	Overloaded      Code = "OVERLOADED"      // the server sheds load; nothing was done
	Unavailable     Code = "UNAVAILABLE"     // a service the answer needs is away, or the gate is closed
	Timeout         Code = "TIMEOUT"         // the deadline passed; what happened is told by the status
	Internal        Code = "INTERNAL"        // a bug, or something nobody foresaw
)

// Error is a fault with its code. It wraps the cause.
type Error struct {
	Code       Code
	Message    string        // for the person; says nothing about the inside
	RetryAfter time.Duration // how long to wait; 0 = not said
	Err        error         // the cause, for the log; may be nil
}

// Error returns the message with its cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns a fault with a code and a message for the person.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Wrap returns a fault with a code around a cause.
func Wrap(code Code, message string, err error) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// CodeOf returns the code of the outermost fault in the chain, Internal when
// there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}
