package drill

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"time"

	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/history"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/periodic"
)

type result int

const (
	unfinished result = iota // no outcome before the time limit
	ordered                  // the order is written
	failed                   // accepted; the task ended without an order
	turnedDown               // refused
)

// buyer is one simulated buyer with what it saw.
type buyer struct {
	apiclient.Client
	account seed.LoadUser
	crowd   *crowd
	number  int // among the buyers, for the history

	result result
	reason string          // code of the refusal or failure
	tasks  map[string]bool // ids of accepted order tasks
	orders map[string]bool // ids of orders

	placed          time.Time // when the call that took a unit began
	unsure          bool      // a call without a reply may have taken a unit
	accepted, ended time.Time // of the order task
}

// noChance is the code of a buyer who gives up in the waiting room because all units are
// taken, though not paid.
const noChance = "NO_CHANCE"

// Documents of a buyer.
const (
	followTask   = `subscription($id: ID!) { orderTaskStatus(orderTaskId: $id) { orderTask { status failure { code } } } }`
	listOrders   = `{ myOrders(first: 20) { edges { node { id item { id } } } } }`
	followTicket = `subscription($id: ID!) { queuePosition(ticketId: $id) { ticket { status endReason path { token } position { chancePercent } } } }`
)

const (
	// callTimeout bounds one query or mutation.
	callTimeout = 10 * time.Second
	// pause is the longest pause before a retry; the mean is half of it.
	pause = 400 * time.Millisecond
)

// errManySignIns is returned while the server accepts sign-ins only with a captcha.
var errManySignIns = errors.New("login: the server asks for a captcha while many sign-ins wait")

// signIn signs in with account and password. If the server limits sign-ins of the drill's
// address, the buyer uses the seeded access token instead. A captcha is asked for while many
// sign-ins wait: the buyer tries again.
func (b *buyer) signIn(ctx context.Context) error {
	return b.retry(ctx, stageSignIn, func(ctx context.Context) (err error) {
		b.Token, err = b.Login(ctx, b.account.Account, b.account.Password)
		switch code := apiclient.Code(err); {
		case code == "RATE_LIMITED" && b.account.AccessToken != "":
			b.crowd.count(&b.crowd.seeded)
			b.Token, err = b.account.AccessToken, nil
		case code == "CAPTCHA_REQUIRED":
			err = errManySignIns // without a code: retried
		}
		return err
	})
}

// buy tries to buy one unit until there is an outcome or ctx ends.
func (b *buyer) buy(ctx context.Context) {
	for ctx.Err() == nil {
		path, err := b.path(ctx)
		var task string
		if err == nil {
			task, err = b.place(ctx, path)
		}
		switch code := apiclient.Code(err); {
		case err == nil:
			b.crowd.count(&b.crowd.accepted)
			b.tasks[task] = true
			b.follow(ctx, task)
			return
		case code == "PATH_INVALID", code == "CAPTCHA_INVALID", code == "CAPTCHA_REQUIRED", code == "SALE_NOT_STARTED",
			code == "SALE_PAUSED", code == "":
			b.sleep(ctx, 0) // a reply was lost, or the gate was closed for a moment
		default:
			b.result, b.reason = turnedDown, code
			b.crowd.refuse(code)
			return
		}
	}
}

// path solves a captcha and returns a path token, after the waiting room if there is one.
func (b *buyer) path(ctx context.Context) (string, error) {
	var challenge apiclient.Challenge
	err := b.retry(ctx, stageCaptcha, func(ctx context.Context) (err error) {
		challenge, err = b.Challenge(ctx, "SECKILL", b.crowd.sale)
		return err
	})
	if err != nil {
		return "", err
	}
	solved, err := challenge.Solve()
	if err != nil {
		return "", err
	}
	var issued apiclient.Issued
	began := time.Now()
	err = b.retry(ctx, stagePath, func(ctx context.Context) (err error) {
		issued, err = b.IssuePath(ctx, b.crowd.item, solved)
		return err
	})
	switch {
	case err != nil:
		b.noteRefusal(err, began)
		return "", err
	case issued.Path != nil:
		return issued.Path.Token, nil
	case issued.Ticket == nil:
		return "", errors.New("issueSeckillPath: neither a path nor a place in the waiting room")
	}
	return b.wait(ctx, issued.Ticket.ID)
}

// wait follows a place in the waiting room until it has a path.
func (b *buyer) wait(ctx context.Context, ticket string) (path string, err error) {
	b.crowd.count(&b.crowd.waited)
	err = b.watch(ctx, followTicket, ticket, func(data json.RawMessage) (bool, error) {
		var event struct {
			QueuePosition struct {
				Ticket struct {
					Status, EndReason string
					Path              *struct{ Token string }
					Position          *struct{ ChancePercent *int }
				}
			}
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return false, err
		}
		t := event.QueuePosition.Ticket
		switch {
		case t.Path != nil:
			path = t.Path.Token
		case t.EndReason != "":
			return true, &apiclient.Refused{Code: t.EndReason}
		case t.Status == "CLOSED", t.Status == "LEFT":
			return true, &apiclient.Refused{Code: "SOLD_OUT"}
		case t.Position != nil && t.Position.ChancePercent != nil && *t.Position.ChancePercent == 0:
			return true, &apiclient.Refused{Code: noChance} // the others may pay for all units
		}
		return path != "", nil
	})
	return path, err
}

// place calls placeOrder with one idempotency key until the outcome is known.
func (b *buyer) place(ctx context.Context, path string) (task string, err error) {
	key, began := rand.Text(), time.Now()
	err = b.retry(ctx, stageOrder, func(ctx context.Context) (err error) {
		task, err = b.PlaceOrder(ctx, b.crowd.item, path, key)
		return err
	})
	switch {
	case err == nil:
		b.placed = began
		b.note(history.Took, task, began)
	case apiclient.Code(err) == "" || ctx.Err() != nil:
		b.unsure = true
		b.note(history.Unknown, "", began)
	default:
		b.noteRefusal(err, began)
	}
	return task, err
}

// note records an operation that is over now.
func (b *buyer) note(k history.Kind, task string, began time.Time) {
	b.crowd.history.Add(history.Operation{Kind: k, Buyer: b.number, Task: uuidOf(task), Began: began, Over: time.Now()})
}

// noteRefusal records a refusal because no unit is left.
func (b *buyer) noteRefusal(err error, began time.Time) {
	if apiclient.Code(err) == "SOLD_OUT" {
		b.note(history.SoldOut, "", began)
	}
}

// uuidOf returns the part of a public id that a task and its order have in common.
func uuidOf(public string) string { return public[strings.LastIndexByte(public, '_')+1:] }

// follow waits for the end of an order task.
func (b *buyer) follow(ctx context.Context, task string) {
	b.accepted = time.Now()
	since := b.accepted // of the last state
	err := b.watch(ctx, followTask, task, func(data json.RawMessage) (bool, error) {
		var event struct {
			OrderTaskStatus struct {
				OrderTask struct {
					Status  string
					Failure *struct{ Code string }
				}
			}
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return false, err
		}
		switch t := event.OrderTaskStatus.OrderTask; t.Status {
		case "SUCCEEDED":
			b.result = ordered
			b.note(history.SawOrder, task, since)
		case "FAILED":
			b.result = failed
			b.note(history.SawFailed, task, since)
			b.note(history.Ended, task, b.placed)
			if t.Failure != nil {
				b.reason = t.Failure.Code
			}
		default:
			b.note(history.SawOpen, task, since)
			since = time.Now()
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return // the time limit: unfinished
	}
	b.ended = time.Now()
	b.crowd.timing(stageWritten, b.ended.Sub(b.accepted))
	if b.result != ordered {
		return
	}
	b.crowd.count(&b.crowd.orders)
	b.readOrders(ctx)
}

// readOrders reads the buyer's orders of the item, which are more than one if an invariant
// is broken.
func (b *buyer) readOrders(ctx context.Context) {
	var data struct {
		MyOrders struct {
			Edges []struct {
				Node struct {
					ID   string
					Item struct{ ID string }
				}
			}
		}
	}
	began := time.Now()
	err := b.retry(ctx, stageRead, func(ctx context.Context) error {
		return b.Execute(ctx, &data, listOrders, apiclient.Object{})
	})
	if err != nil {
		return // no order was seen: I4 does not hold
	}
	none := true
	for _, e := range data.MyOrders.Edges {
		if e.Node.Item.ID == b.crowd.item {
			b.orders[e.Node.ID], none = true, false
			b.note(history.SawOrder, e.Node.ID, began)
		}
	}
	if none && !b.unsure {
		b.note(history.SawNone, "", began)
	}
}

// look reads the buyer's orders again and again, as a page does that polls.
func (b *buyer) look(ctx context.Context, times int) {
	for range times {
		if ctx.Err() != nil {
			return
		}
		b.readOrders(ctx)
	}
}

// watch subscribes again after lost connections until each returns true, a refusal, or ctx
// ends.
func (b *buyer) watch(ctx context.Context, document, id string, each func(json.RawMessage) (bool, error)) error {
	for {
		err := b.Subscribe(ctx, document, apiclient.Object{"id": id}, each)
		if err == nil || apiclient.Code(err) != "" || ctx.Err() != nil {
			return err
		}
		b.crowd.count(&b.crowd.retries)
		b.sleep(ctx, 0)
	}
}

// retry repeats a call whose outcome is unknown or that asks for a retry, and records the
// duration of the last try.
func (b *buyer) retry(ctx context.Context, s stage, call func(context.Context) error) error {
	for {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(limited)
		cancel()
		b.crowd.timing(s, time.Since(began))
		var wait time.Duration
		switch code := apiclient.Code(err); code {
		case "RATE_LIMITED", "OVERLOADED", "UNAVAILABLE", "TIMEOUT", "IDEMPOTENCY_IN_PROGRESS":
			r, _ := errors.AsType[*apiclient.Refused](err)
			wait = r.RetryAfter
		case "": // success, or no answer
			if err == nil {
				return nil
			}
		default:
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		b.crowd.count(&b.crowd.retries)
		b.sleep(ctx, wait)
	}
}

// sleep waits at least d, with jitter, or until ctx ends.
func (b *buyer) sleep(ctx context.Context, d time.Duration) {
	jitter, err := rand.Int(rand.Reader, big.NewInt(int64(pause)))
	if err == nil {
		d += time.Duration(jitter.Int64())
	}
	_ = periodic.Sleep(ctx, d) // the caller looks at ctx
}
