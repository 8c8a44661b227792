package fault

import (
	"errors"
	"strings"
	"time"

	"seckill/internal/platform/collect"
)

// Reason is the machine-readable reason of a refusal: the ErrorCode enum of the public
// API.
type Reason string

// Reasons of refusals. The API schema documents their meaning.
const (
	AddressRequired       Reason = "ADDRESS_REQUIRED"
	AccountTooNew         Reason = "ACCOUNT_TOO_NEW"
	DrawSale              Reason = "DRAW_SALE"
	EntriesClosed         Reason = "ENTRIES_CLOSED"
	ContactUnverified     Reason = "CONTACT_UNVERIFIED"
	AlreadyOrdered        Reason = "ALREADY_ORDERED"
	CaptchaInvalid        Reason = "CAPTCHA_INVALID"
	CaptchaRequired       Reason = "CAPTCHA_REQUIRED"
	CodeExpired           Reason = "CODE_EXPIRED"
	CodeInvalid           Reason = "CODE_INVALID"
	CodeOtherSale         Reason = "CODE_OTHER_SALE"
	CodeRevoked           Reason = "CODE_REVOKED"
	CodeUsed              Reason = "CODE_USED"
	Conflict              Reason = "CONFLICT"
	AccountTaken          Reason = "ACCOUNT_TAKEN"
	IdempotencyInProgress Reason = "IDEMPOTENCY_IN_PROGRESS"
	IdempotencyMismatch   Reason = "IDEMPOTENCY_MISMATCH"
	InvalidCredentials    Reason = "INVALID_CREDENTIALS"
	InvalidInput          Reason = "INVALID_INPUT"
	LinkInvalid           Reason = "LINK_INVALID"
	MailUnavailable       Reason = "MAIL_UNAVAILABLE"
	Unknown               Reason = "NOT_FOUND"
	NoAccess              Reason = "NO_ACCESS"
	OneTimeCodeInvalid    Reason = "ONE_TIME_CODE_INVALID"
	OneTimeCodeRequired   Reason = "ONE_TIME_CODE_REQUIRED"
	OrderExpired          Reason = "ORDER_EXPIRED"
	OwnSale               Reason = "OWN_SALE"
	PathInvalid           Reason = "PATH_INVALID"
	PaymentDeclined       Reason = "PAYMENT_DECLINED"
	PurchaseLimitReached  Reason = "PURCHASE_LIMIT_REACHED"
	TooManyTries          Reason = "RATE_LIMITED"
	SaleClosed            Reason = "SALE_CLOSED"
	SaleNotStarted        Reason = "SALE_NOT_STARTED"
	SalePaused            Reason = "SALE_PAUSED"
	SessionInvalid        Reason = "SESSION_INVALID"
	SoldOut               Reason = "SOLD_OUT"
	TooFewLeft            Reason = "TOO_FEW_LEFT"
	UnderReview           Reason = "UNDER_REVIEW"
)

// Refusal is an expected failure of a use case. Domains implement it with types that
// carry the details; package graph translates them by type. Error returns a text for
// tools and logs, see Text.
type Refusal interface {
	error
	// Reason returns the machine-readable reason.
	Reason() Reason
	// Path returns the path of the invalid input in the input of the use case; empty = the input itself, nil = none.
	Path() []string
}

// AsRefusal returns the refusal in the chain of an error. A fault in the same chain takes
// precedence: then there is no refusal.
func AsRefusal(err error) (Refusal, bool) {
	if _, failed := errors.AsType[*Error](err); failed {
		return nil, false
	}
	return errors.AsType[Refusal](err)
}

// ReasonOf returns the reason of the refusal in the chain of an error, "" when there is
// none.
func ReasonOf(err error) Reason {
	if refusal, ok := AsRefusal(err); ok {
		return refusal.Reason()
	}
	return ""
}

// Text returns the text of a refusal, for its Error method: the reason, the path of the
// refused input, and details, which may be "".
func Text(r Refusal, details string) string {
	text := strings.ToLower(strings.ReplaceAll(string(r.Reason()), "_", " "))
	if path := r.Path(); len(path) > 0 {
		text += " at " + strings.Join(path, ".")
	}
	if details != "" {
		text += ": " + details
	}
	return text
}

// Refused is a refusal without details besides its reason.
type Refused struct {
	Why Reason
	At  []string // path of the invalid input in the input of the use case; nil = none
}

// Reason returns the reason.
func (r Refused) Reason() Reason { return r.Why }

// Path returns the path of the invalid input.
func (r Refused) Path() []string { return r.At }

// Error returns the reason and the path.
func (r Refused) Error() string { return Text(r, "") }

// BadField refuses an input value that violates a rule.
type BadField struct {
	At   []string // path of the field in the input of the use case
	Rule Rule
}

// Reason returns InvalidInput.
func (BadField) Reason() Reason { return InvalidInput }

// Path returns the path of the field.
func (b BadField) Path() []string { return b.At }

// Error returns the path of the field and the rule.
func (b BadField) Error() string { return Text(b, b.Rule.String()) }

// Refusals are several refusals of one input, in the order of its fields.
type Refusals []Refusal

// All returns the refusals of its arguments as one error: nil without any, a single one
// as it is. An error that is no refusal takes precedence.
func All(errs ...error) error {
	var found Refusals
	for _, err := range errs {
		if err == nil {
			continue
		}
		refusal, ok := AsRefusal(err)
		if !ok {
			return err
		}
		found = append(found, Each(refusal)...)
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	}
	return found
}

// Each returns the refusals that a refusal holds: itself, unless it is Refusals.
func Each(refusal Refusal) Refusals {
	if several, ok := refusal.(Refusals); ok {
		return several
	}
	return Refusals{refusal}
}

// Reason returns the reason of the first refusal.
func (r Refusals) Reason() Reason { return r[0].Reason() }

// Path returns the path of the first refusal.
func (r Refusals) Path() []string { return r[0].Path() }

func (r Refusals) Error() string {
	texts := collect.Map(r, func(refusal Refusal) string { return refusal.Error() })
	return strings.Join(texts, "; ")
}

// Unwrap returns the refusals, for errors.As.
func (r Refusals) Unwrap() []error {
	return collect.Map(r, func(refusal Refusal) error { return refusal })
}

// Cause is what a wait is for: the RateLimitCause enum of the public API.
type Cause string

// Causes of waits.
const (
	TooManyCalls Cause = "TOO_MANY_CALLS" // calls of one kind
	// orders that were not paid in time, path tokens and offers that were not used
	ExpiredReservations Cause = "EXPIRED_RESERVATIONS"
	NoPermit            Cause = "NO_PERMIT" // every permit of the item is in use, or others wait
)

// Throttled refuses an attempt that exceeds a rate limit.
type Throttled struct {
	RetryAfter time.Duration // minimum wait before a retry
	At         []string
	Cause      Cause // "" means TooManyCalls
}

// Reason returns TooManyTries.
func (Throttled) Reason() Reason { return TooManyTries }

// Path returns the path of the invalid input, usually nil.
func (t Throttled) Path() []string { return t.At }

// Error returns the wait.
func (t Throttled) Error() string { return Text(t, "retry after "+t.RetryAfter.String()) }
