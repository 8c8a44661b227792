package payment_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/stream"
)

// errLost is the error of a call with an unknown outcome.
var errLost = errors.New("connection lost")

// errDied is the panic value that simulates a crash of our process at an external call.
var errDied = errors.New("killed")

// fate is the result of an external call.
type fate int

const (
	fine      fate = iota
	unsent         // it never arrives
	replyLost      // it is executed, and the reply is lost
	died           // our process crashes before it
	diedAfter      // it is executed, and our process crashes

	lostFates = 3 // number of fates without a crash
	allFates  = 5
)

// flaky is a proxy for the bank and the gate that loses calls as configured.
type flaky struct {
	payment.Provider
	gate  payment.Gate
	whole bool // the provider refunds additional transactions itself

	mu       sync.Mutex
	next     func(call string) fate         // guarded by mu; nil = every call succeeds
	returned map[string]payment.RefundInput // additional transactions, which the bank does not have; guarded by mu
}

// lose sets the fate of calls from now on.
func (f *flaky) lose(next func(call string) fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = next
}

func (f *flaky) fate(call string) fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		return fine
	}
	return f.next(call)
}

func lossy[T any](f *flaky, call string, do func() (T, error)) (T, error) {
	var none T
	fate := f.fate(call)
	switch fate {
	case unsent:
		return none, errLost
	case died:
		panic(errDied)
	case fine, replyLost, diedAfter:
	}
	got, err := do()
	switch fate {
	case replyLost:
		return none, errLost
	case diedAfter:
		panic(errDied)
	case fine, unsent, died:
	}
	return got, err
}

// flakyBiller is a flaky provider with a bill.
type flakyBiller struct {
	*flaky

	biller payment.Biller
}

func (f flakyBiller) Merchant() string { return f.biller.Merchant() }

func (f flakyBiller) Bill(ctx context.Context, day time.Time) (payment.Bill, error) {
	return f.biller.Bill(ctx, day)
}

// flakyAuthorizer is a flaky provider that holds cards.
type flakyAuthorizer struct {
	*flaky

	authorizer payment.Authorizer
	namer      payment.PayerNamer
}

func (f flakyAuthorizer) Holds() time.Duration { return f.authorizer.Holds() }

func (f flakyAuthorizer) Capture(ctx context.Context, p payment.Known) (payment.State, error) {
	return lossy(f.flaky, "capture", func() (payment.State, error) { return f.authorizer.Capture(ctx, p) })
}

func (f flakyAuthorizer) Payer(ctx context.Context, transaction string) (string, error) {
	return f.namer.Payer(ctx, transaction)
}

func (f *flaky) Create(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	return lossy(f, "create", func() (payment.Created, error) { return f.Provider.Create(ctx, in) })
}

func (f *flaky) Query(ctx context.Context, p payment.Known) (payment.State, error) {
	return lossy(f, "query", func() (payment.State, error) { return f.Provider.Query(ctx, p) })
}

func (f *flaky) Close(ctx context.Context, p payment.Known) (payment.State, error) {
	return lossy(f, "close", func() (payment.State, error) { return f.Provider.Close(ctx, p) })
}

func (f *flaky) Refund(ctx context.Context, in payment.RefundInput) error {
	_, err := lossy(f, "refund", func() (struct{}, error) {
		if in.Transaction == "" || f.whole {
			return struct{}{}, f.Provider.Refund(ctx, in)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.returned == nil {
			f.returned = map[string]payment.RefundInput{}
		}
		f.returned[in.Transaction] = in
		return struct{}{}, nil
	})
	return err
}

func (f *flaky) Reacquire(ctx context.Context, c order.Reservation) (outcome payment.ReacquireOutcome, epoch int64, err error) {
	outcome, err = lossy(f, "reacquire", func() (payment.ReacquireOutcome, error) {
		outcome, at, err := f.gate.Reacquire(ctx, c)
		epoch = at
		return outcome, err
	})
	return outcome, epoch, err
}

func (f *flaky) Return(ctx context.Context, c order.Reservation) (bool, error) {
	return lossy(f, "give back", func() (bool, error) { return f.gate.Return(ctx, c) })
}

// patiently repeats do while it returns retryable errors.
func patiently[T any](do func() (T, error)) (got T, err error) {
	for range 10 {
		if got, err = do(); err == nil || !(stream.IsRetryable(err) || errors.Is(err, batch.ErrFull)) {
			break
		}
	}
	return got, err
}
