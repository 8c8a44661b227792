package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/internal/platform/fault"
)

func TestARefusalIsAnErrorThatIsFoundInItsChain(t *testing.T) {
	t.Parallel()
	refusal := fault.Refused{Why: fault.SoldOut}
	for _, err := range []error{refusal, fmt.Errorf("place order: %w", refusal), errors.Join(errors.New("first"), refusal)} {
		if got, ok := fault.AsRefusal(err); !ok || got.Reason() != fault.SoldOut || fault.ReasonOf(err) != fault.SoldOut {
			t.Errorf("%v: %v, %v", err, got, ok)
		}
	}
	for _, err := range []error{
		nil, errors.New("bug"), fault.New(fault.NotFound, "none"),
		fault.Wrap(fault.Unavailable, "try again", refusal), errors.Join(refusal, fault.New(fault.Timeout, "late")),
	} {
		if got, ok := fault.AsRefusal(err); ok || fault.ReasonOf(err) != "" {
			t.Errorf("%v: found %v", err, got)
		}
	}
}

func TestARefusalIsNotRetriedAndHasNoFaultCode(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{
		fault.Refused{Why: fault.IdempotencyInProgress}, fault.Throttled{RetryAfter: time.Second}, fault.BadField{Rule: fault.Min(1)},
	} {
		if fault.IsTransient(refusal) || fault.IsTransient(fmt.Errorf("try: %w", refusal)) || fault.CodeOf(refusal) != fault.Internal {
			t.Errorf("%v counts as a fault of a service", refusal)
		}
	}
}

func TestARefusalNamesReasonPathAndDetails(t *testing.T) {
	t.Parallel()
	for text, refusal := range map[string]error{
		"sold out":                     fault.Refused{Why: fault.SoldOut},
		"conflict at orderId":          fault.Refused{Why: fault.Conflict, At: []string{"orderId"}},
		"invalid input at n: min: 1":   fault.BadField{At: []string{"n"}, Rule: fault.Min(1)},
		"rate limited: retry after 2s": fault.Throttled{RetryAfter: 2 * time.Second},
	} {
		if got := refusal.Error(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}
