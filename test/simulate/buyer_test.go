package simulate_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// state is how far a buyer is, as the buyer knows it.
type state int

const (
	away state = iota
	asking
	placing   // placeOrder was called
	submitted // it was accepted; there is no order yet
	unpaid
	paying // a payment was begun
	paid
	refunding
	waiting // sold out, and perhaps on the waitlist
	done
	states
)

var stateNames = [states]string{"away", "asking", "placing", "submitted", "unpaid", "paying", "paid", "refunding", "waiting", "done"}

// plan is what a buyer does with an order.
type plan int

const (
	pays plan = iota
	paysLate
	declines // the first payment is declined, the second paid
	cancels
	forgets
	refunds
	plans
)

// buyer is a simulated customer.
type buyer struct {
	*apiclient.Client
	in     *installation
	number int
	random *source
	plan   plan
	until  time.Time // until which a buyer who was refused tries again
	entry  string    // id of the entry on the waitlist

	mu     sync.Mutex
	state  state           // guarded by mu
	tasks  map[string]bool // guarded by mu; accepted ones, and whether they have ended
	failed map[string]string
	order  orderNode // guarded by mu; as last read
	paying int       // guarded by mu; payments that were begun
}

// orderNode is an order as its buyer reads it.
type orderNode struct {
	ID, Status string
	Refunds    []struct{ ID, State string }
}

func (b *buyer) is(s state) {
	b.mu.Lock()
	b.state = s
	b.mu.Unlock()
	b.in.mu.Lock()
	defer b.in.mu.Unlock()
	close(b.in.entered[s])
	b.in.entered[s] = make(chan struct{})
}

func (b *buyer) now() state {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

func (b *buyer) note(format string, args ...any) {
	b.in.note(fmt.Sprintf("buyer %d ", b.number) + fmt.Sprintf(format, args...))
}

// pause waits between two tries.
func (b *buyer) pause(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(20*time.Millisecond + b.random.upTo(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// insist repeats a call until it has an answer, or has to wait for longer than a story lasts.
func (b *buyer) insist(ctx context.Context, call func(context.Context) error) error {
	for {
		limited, cancel := context.WithTimeout(ctx, 4*time.Second)
		err := call(limited)
		cancel()
		code := apiclient.Code(err)
		switch code {
		case "INTERNAL":
			b.in.fail("buyer %d: %v", b.number, err)
		case "UNAUTHENTICATED": // by a process whose clock is wrong
		case "RATE_LIMITED", "OVERLOADED", "UNAVAILABLE", "TIMEOUT", "IDEMPOTENCY_IN_PROGRESS":
			if refused, ok := errors.AsType[*apiclient.Refused](err); ok && refused.RetryAfter > settles {
				return err // after reservations and offers that expired
			}
		case "":
			if err == nil {
				return nil
			}
		default:
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		b.pause(ctx, 800*time.Millisecond)
	}
}

// run buys, pays and waits for the end of the order.
func (b *buyer) run(ctx context.Context, of *seed.Result) {
	defer b.HTTP.CloseIdleConnections()
	defer b.is(done)
	for {
		b.is(asking)
		task, err := b.buy(ctx, of)
		switch code := apiclient.Code(err); {
		case ctx.Err() != nil:
			return
		case err == nil:
			b.mu.Lock()
			b.tasks[task] = false
			b.mu.Unlock()
			if b.follow(ctx, task) {
				b.finish(ctx, of)
				return
			}
		case code == "ALREADY_ORDERED" || code == "PURCHASE_LIMIT":
			b.note("refused %s", code)
			if list, err := b.read(ctx); err == nil && len(list) > 0 { // else an offer that is over
				b.finish(ctx, of)
				return
			}
		case code != "SOLD_OUT":
			b.note("%v", err)
		default:
			b.is(waiting)
			if b.entry == "" && b.random.chance(50) {
				b.join(ctx, of)
			}
		}
		if time.Now().After(b.until) {
			if b.entry != "" && b.random.chance(75) { // the others let an offer expire
				b.leave(ctx)
			}
			return
		}
		b.pause(ctx, 2*time.Second)
	}
}

// buy returns the order task of one unit.
func (b *buyer) buy(ctx context.Context, of *seed.Result) (task string, err error) {
	var issued apiclient.Issued
	if b.entry != "" {
		return b.redeem(ctx, of)
	}
	err = b.solve(ctx, "SECKILL", of, func(ctx context.Context, solved apiclient.Object) (err error) {
		issued, err = b.IssuePath(ctx, of.ItemID, solved)
		return err
	})
	if err != nil {
		return "", err
	}
	if issued.Path != nil {
		return b.place(ctx, of, issued.Path.Token)
	}
	path, err := b.queue(ctx, issued.Ticket.ID)
	if err != nil {
		return "", err
	}
	return b.place(ctx, of, path)
}

// queue follows a ticket of the waiting room for some seconds, until it has a path.
func (b *buyer) queue(ctx context.Context, ticket string) (path string, err error) {
	b.is(waiting)
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	err = b.Subscribe(ctx, `subscription($id: ID!) { queuePosition(ticketId: $id) { ticket { status path { token } } } }`,
		apiclient.Object{"id": ticket}, func(data json.RawMessage) (bool, error) {
			var event struct {
				QueuePosition struct {
					Ticket struct {
						Status string
						Path   *struct{ Token string }
					}
				}
			}
			err := json.Unmarshal(data, &event)
			if event.QueuePosition.Ticket.Path != nil {
				path = event.QueuePosition.Ticket.Path.Token
			}
			return path != "", err
		})
	b.in.count("queued")
	return path, err
}

// place places an order with a path token or an entry of the waitlist.
func (b *buyer) place(ctx context.Context, of *seed.Result, path string) (task string, err error) {
	b.is(placing)
	key := rand.Text()
	err = b.insist(ctx, func(ctx context.Context) (err error) {
		task, err = b.PlaceOrder(ctx, of.ItemID, path, key)
		return err
	})
	if err != nil {
		b.note("placeOrder: %v", err)
	} else {
		b.note("accepted %s", task)
	}
	return task, err
}

// solve answers a captcha and uses the answer.
func (b *buyer) solve(ctx context.Context, purpose string, of *seed.Result,
	use func(context.Context, apiclient.Object) error) error {
	var challenge apiclient.Challenge
	err := b.insist(ctx, func(ctx context.Context) (err error) {
		challenge, err = b.Challenge(ctx, purpose, of.SaleID)
		return err
	})
	if err != nil {
		return err
	}
	solved, err := challenge.Solve()
	if err != nil {
		return err
	}
	return b.insist(ctx, func(ctx context.Context) error { return use(ctx, solved) })
}

// waitlistEntry is a place on the waitlist.
type waitlistEntry struct {
	WaitlistEntry struct{ ID, Status string }
}

// join joins the waitlist.
func (b *buyer) join(ctx context.Context, of *seed.Result) {
	var joined waitlistEntry
	err := b.solve(ctx, "WAITLIST", of, func(ctx context.Context, solved apiclient.Object) error {
		return b.Mutate(ctx, &joined, "joinWaitlist", "waitlistEntry { id status }", apiclient.Object{"itemId": of.ItemID, "captcha": solved})
	})
	b.note("joinWaitlist: %v", err)
	b.entry = joined.WaitlistEntry.ID
}

// leave leaves the waitlist.
func (b *buyer) leave(ctx context.Context) {
	err := b.insist(ctx, func(ctx context.Context) error {
		return b.Mutate(ctx, &struct{}{}, "leaveWaitlist", "waitlistEntry { status }", apiclient.Object{"waitlistEntryId": b.entry})
	})
	b.note("leaveWaitlist: %v", err)
}

// redeem buys the unit that the waitlist offers; without an offer it is sold out.
func (b *buyer) redeem(ctx context.Context, of *seed.Result) (task string, err error) {
	b.is(waiting)
	var joined waitlistEntry
	err = b.insist(ctx, func(ctx context.Context) error {
		return b.Mutate(ctx, &joined, "joinWaitlist", "waitlistEntry { id status }", apiclient.Object{"itemId": of.ItemID})
	})
	switch e := joined.WaitlistEntry; {
	case err != nil:
		b.entry = ""
		return "", err
	case e.Status != "OFFERED":
		return "", &apiclient.Refused{Code: "SOLD_OUT"}
	default:
		return b.place(ctx, of, e.ID)
	}
}

// follow waits for the end of a task and reports whether it has an order.
func (b *buyer) follow(ctx context.Context, task string) bool {
	b.is(submitted)
	for {
		var data struct {
			OrderTask *struct {
				Status  string
				Order   *struct{ ID string }
				Failure *struct{ Code string }
			}
		}
		err := b.insist(ctx, func(ctx context.Context) error {
			return b.Execute(ctx, &data, `query($id: ID!) { orderTask(id: $id) { status order { id } failure { code } } }`, apiclient.Object{"id": task})
		})
		if ctx.Err() != nil {
			return false
		}
		if err == nil && data.OrderTask != nil && data.OrderTask.Status != "SUBMITTED" {
			b.mu.Lock()
			b.tasks[task] = true
			failed := data.OrderTask.Status == "FAILED"
			if failed {
				b.failed[task] = "?"
				if data.OrderTask.Failure != nil {
					b.failed[task] = data.OrderTask.Failure.Code
				}
			} else if data.OrderTask.Order != nil {
				b.order = orderNode{ID: data.OrderTask.Order.ID}
			}
			b.mu.Unlock()
			if failed {
				b.note("task failed: %s", b.failed[task])
			}
			return !failed
		}
		b.pause(ctx, 600*time.Millisecond)
	}
}

// read reads the orders of the buyer and keeps the live one, or the last.
func (b *buyer) read(ctx context.Context) (list []orderNode, err error) {
	var data struct {
		MyOrders struct{ Edges []struct{ Node orderNode } }
	}
	err = b.insist(ctx, func(ctx context.Context) error {
		return b.Execute(ctx, &data, `{ myOrders(first: 20) { edges { node { id status refunds { id state } } } } }`, apiclient.Object{})
	})
	for _, e := range data.MyOrders.Edges {
		list = append(list, e.Node)
	}
	return list, err
}

// finish acts on the order as planned until it has ended.
func (b *buyer) finish(ctx context.Context, _ *seed.Result) {
	acted, asked := false, false
	for ctx.Err() == nil {
		list, err := b.read(ctx)
		if err == nil && len(list) == 0 && b.in.lostRecord() {
			b.note("the order is gone")
			return
		}
		if err != nil || len(list) == 0 {
			b.pause(ctx, time.Second)
			continue
		}
		now := list[0]
		b.mu.Lock()
		if b.order.Status != now.Status {
			b.in.note(fmt.Sprintf("buyer %d order %s", b.number, now.Status))
		}
		b.order = now
		b.mu.Unlock()
		switch now.Status {
		case "PENDING_PAYMENT":
			if !acted {
				b.is(unpaid)
				acted = b.act(ctx, now.ID)
			}
		case "PAID":
			if b.plan != refunds || asked {
				return
			}
			b.is(paid)
			asked = b.refund(ctx, now.ID)
		case "REFUNDING":
			b.is(refunding)
		default:
			return
		}
		b.pause(ctx, time.Second)
	}
}

// act pays or cancels, and reports whether nothing is left to do.
func (b *buyer) act(ctx context.Context, order string) bool {
	switch b.plan {
	case forgets:
		return true
	case cancels:
		err := b.insist(ctx, func(ctx context.Context) error {
			return b.Mutate(ctx, &struct{}{}, "cancelOrder", "order { status }", apiclient.Object{"orderId": order})
		})
		b.note("cancelOrder: %v", err)
		return true
	default: // the others pay
	}
	var data struct{ Payment *struct{ ID string } }
	key := rand.Text()
	b.is(paying)
	err := b.insist(ctx, func(ctx context.Context) error {
		return b.Mutate(ctx, &data, "payOrder", "payment { id }", apiclient.Object{"orderId": order, "idempotencyKey": key, "optionId": "service"})
	})
	if err != nil || data.Payment == nil {
		b.note("payOrder: %v", err)
		return apiclient.Code(err) == "ORDER_EXPIRED"
	}
	of, err := id.ParsePayment(data.Payment.ID)
	if err != nil {
		b.in.fail("payment %q: %v", data.Payment.ID, err)
		return true
	}
	b.mu.Lock()
	b.paying++
	first := b.paying == 1
	b.mu.Unlock()
	wait := time.Second
	if b.plan == paysLate {
		wait = 12 * time.Second
	}
	b.pause(ctx, wait)
	if b.plan == declines && first {
		b.note("declined %t", b.in.bank.Decline(of))
		b.in.bank.report(of, false)
		b.pause(ctx, time.Second)
		return false
	}
	charge, known := b.in.bank.Charge(of)
	if !known {
		return false
	}
	b.note("paid %t", b.in.bank.Pay(of, charge.AmountMinor, charge.Currency))
	b.in.bank.report(of, charge.Phase != payment.PhaseOpen)
	return true
}

// refund asks for the money of a paid order.
func (b *buyer) refund(ctx context.Context, order string) bool {
	key := rand.Text()
	err := b.insist(ctx, func(ctx context.Context) error {
		return b.Mutate(ctx, &struct{}{}, "requestRefund", "order { status }", apiclient.Object{"orderId": order, "reason": "it is too large", "idempotencyKey": key})
	})
	b.note("requestRefund: %v", err)
	return err == nil || !strings.Contains(err.Error(), "UNAVAILABLE")
}

// operate approves refunds until ctx ends.
func (in *installation) operate(ctx context.Context, c *apiclient.Client) {
	defer c.HTTP.CloseIdleConnections()
	b := &buyer{Client: c, in: in, number: -1, random: newSource(in.seed, 99)}
	for ctx.Err() == nil {
		var data struct {
			Refunds struct {
				Edges []struct{ Node struct{ ID string } }
			}
		}
		err := b.insist(ctx, func(ctx context.Context) error {
			return b.Execute(ctx, &data, `{ refunds(filter: {states: [REQUESTED]}) { edges { node { id } } } }`, apiclient.Object{})
		})
		if err != nil && ctx.Err() == nil {
			in.fail("refunds: %v", err)
			return
		}
		for _, e := range data.Refunds.Edges {
			err := b.insist(ctx, func(ctx context.Context) error {
				return b.Mutate(ctx, &struct{}{}, "decideRefund", "order { status }", apiclient.Object{"refundId": e.Node.ID, "approve": true})
			})
			in.note(fmt.Sprintf("operator decideRefund: %v", err))
		}
		b.pause(ctx, 2*time.Second)
	}
}
