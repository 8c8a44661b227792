// Package fault distinguishes the two ways in which a request can fail. Both are errors
// that a use case returns. It does not own refusals with details (the domains do), nor their form in the API (graph).
//
// A Refusal is an expected outcome: sold out, wrong captcha, sale not started. It reaches
// the client in the payload's userErrors, and is neither logged nor retried. AsRefusal
// finds it in an error. Where a
// use case says so, the value that it returns beside a refusal is valid: the order that
// cannot be paid, for example.
//
// A Fault is anything else: no principal, a service down, a bug. It carries one of about
// ten codes, and reaches the client in the top-level errors list. An error without a code is
// UNAVAILABLE when it shows that a service is unreachable or busy (IsTransient), else
// INTERNAL: the client receives only an error id.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Code is the code of a fault, which clients receive in extensions.code.
type Code string

// Fault codes.
const (
	Unauthenticated Code = "UNAUTHENTICATED" // no principal, or an invalid token
	Forbidden       Code = "FORBIDDEN"       // the role is too low
	BadInput        Code = "BAD_USER_INPUT"  // input error outside of any userErrors list
	NotFound        Code = "NOT_FOUND"       // no object with that id is visible to the principal
	RateLimited     Code = "RATE_LIMITED"    // too many attempts; RetryAfter says when to retry
	Overloaded      Code = "OVERLOADED"      // the server sheds load; the request had no effect
	Unavailable     Code = "UNAVAILABLE"     // a required service is unreachable, or the gate is closed
	Timeout         Code = "TIMEOUT"         // the deadline passed; the outcome is unknown and can be read from the status
	Internal        Code = "INTERNAL"        // a bug, or an unforeseen error
)

// Error is a fault with its code. It wraps the cause.
type Error struct {
	Code       Code
	Message    string        // for the user; without internal details
	RetryAfter time.Duration // how long to wait before a retry; 0 = unspecified
	Err        error         // the cause, for the log; may be nil
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// New returns a fault with a code and a message for the user.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Wrap returns a fault with a code that wraps a cause.
func Wrap(code Code, message string, err error) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// CodeOf returns the code of the outermost fault in the chain, Internal when there is
// none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// ellipsis ends a text that was shortened.
const ellipsis = "…"

// Shorten returns a text in the form that is logged, stored or sent: valid UTF-8 without
// NUL, which Postgres refuses, of at most a number of bytes, with an ellipsis at the end if
// something was left out. most is at
// least 3.
func Shorten(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
