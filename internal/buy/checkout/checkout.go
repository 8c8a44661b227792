// Package checkout implements the buyer's use cases that cross domains: issuing a path
// token, entering the waiting room, placing an order, joining the waitlist. Place turns
// an attempt into an order task; the worker (packages orderintake and order) writes the order.
//
// The package stores nothing; Tries counts in memory. It combines the catalogue, the
// StockCache, the gate in Redis and the admission services, and returns the outcome.
package checkout

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/admission/risk"
	"seckill/internal/buy/member"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/account"
	"seckill/internal/identity/person"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// Checkout implements the use cases. It is safe for concurrent use.
type Checkout struct {
	cfg     Config
	sharing *order.Sharing
}

// Config holds the dependencies of a Checkout.
type Config struct {
	Catalog  *sale.Catalog
	Stock    *reservation.StockCache
	Gate     *reservation.Gate
	Orders   *order.Store
	Paths    *path.Service
	Queue    *queue.Service
	Waitlist *waitlist.Service
	Restock  *waitlist.RestockOutlooks
	Tries    *Tries             // required; NoLimit() = none
	Risk     *risk.Hook         // asked about buyers before admission; nil = none
	Book     *recipient.Book    // for sales whose orders have an address
	Users    *account.Directory // for sales that require something of an account
	Persons  person.Hasher      // for sales whose limits count more than the account
	Members  *member.Service    // for sales with access rules
	Codes    access.Codes       // that give access
	Observer Observer
}

// Observer receives what buyers did, for the figures of a sale.
type Observer interface {
	// Placed receives a call of Place on a public item, and how long it took.
	Placed(of id.Sale, in Attempt, out Result, took time.Duration, err error)
	// PathIssued receives a buyer who got a path token without waiting.
	PathIssued(of id.Sale)
}

// New returns a Checkout.
func New(cfg Config) *Checkout { return &Checkout{cfg: cfg, sharing: order.NewSharing(cfg.Orders)} }

// Attempt is one attempt to buy.
type Attempt struct {
	User           id.User
	Item           id.Item
	Quantity       int
	PathToken      string
	IdempotencyKey string
	From           netip.Addr // address of the request
	Device         string     // id of the browser, "" = unknown
}

// Result is the result of Place. Beside a refusal, Task is the task of the buyer's
// existing reservation of the item, or nil.
type Result struct {
	Task     *order.Task
	Replayed bool // an earlier call with the same idempotency key was accepted
}

// Place takes stock and queues the order. It returns once Redis has taken the stock and
// stored the message, in one step; a worker writes the order row later.
func (c *Checkout) Place(ctx context.Context, in Attempt) (Result, error) {
	item, parent, err := c.find(ctx, in.Item)
	if err != nil {
		return Result{}, err
	}
	if parent.Private && c.cfg.Paths.Permit(in.User, in.Item, in.PathToken).Until.IsZero() {
		if err := c.checkAccess(ctx, parent, in.User); err != nil {
			return Result{}, err
		}
	}
	began := time.Now()
	result, err := c.attempt(ctx, parent, item, in)
	c.cfg.Observer.Placed(parent.ID, in, result, time.Since(began), err)
	return result, err
}

// attempt makes the checks in the order of their cost: own sale, tries in this process, StockCache, gate
// in Redis. An offer of the waitlist skips the StockCache and the path token.
func (c *Checkout) attempt(ctx context.Context, parent *sale.Sale, item *sale.Item, in Attempt) (Result, error) {
	if parent.PreparedBy(in.User) {
		return Result{}, sale.OwnSale()
	}
	tries, err := c.cfg.Tries.take(parent, in.User)
	if err != nil {
		return Result{}, err
	}
	if _, ok := offerOf(in.PathToken); ok {
		return c.redeemOffer(ctx, parent, item, in)
	}
	share := person.Key("")
	if parent.Access.Kept() > 0 {
		share = c.cfg.Paths.Permit(in.User, item.ID, in.PathToken).Persons.Share
	}
	if o, refused := c.cfg.Stock.RefuseAttempt(item.ID, in.User, share, in.IdempotencyKey); refused {
		return c.refuse(ctx, parent, in, o)
	}
	attempt, err := c.newAttempt(in, parent, item)
	if err != nil {
		return Result{}, err
	}
	attempt.Tries = tries
	o, err := c.cfg.Gate.Reserve(ctx, attempt)
	if err != nil {
		return Result{}, err
	}
	return c.answer(ctx, parent, in, attempt, o)
}

// answer maps an outcome of the gate in Redis to a result.
func (c *Checkout) answer(ctx context.Context, parent *sale.Sale, in Attempt, attempt reservation.Attempt,
	o reservation.Outcome) (Result, error) {
	if o.Epoch > 0 {
		c.cfg.Stock.Update(in.Item, o.Epoch, o.Revision, o.Remaining)
	}
	switch o.Code {
	case reservation.Accepted:
		task := submitted(attempt, o)
		c.cfg.Orders.NoteAccepted(*task, o.Epoch)
		return Result{Task: task}, nil
	case reservation.Replayed:
		return Result{Task: c.task(ctx, parent, in, o), Replayed: true}, nil
	default:
		return c.refuse(ctx, parent, in, o)
	}
}

// find returns a public item and its sale.
func (c *Checkout) find(ctx context.Context, itemID id.Item) (*sale.Item, *sale.Sale, error) {
	catalog, err := c.cfg.Catalog.Snapshot(ctx)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Unavailable, "The sales cannot be read now. Please try again shortly.", err)
	}
	item := catalog.Item(itemID)
	if item == nil {
		return nil, nil, fault.Refused{Why: fault.Unknown, At: []string{"itemId"}}
	}
	parent := catalog.Sale(item.SaleID)
	if !parent.Public() {
		return nil, nil, fault.Refused{Why: fault.Unknown, At: []string{"itemId"}}
	}
	return item, parent, nil
}

// findFor returns a public item and its sale as find does, of a private sale only for a buyer with access.
func (c *Checkout) findFor(ctx context.Context, itemID id.Item, user id.User) (*sale.Item, *sale.Sale, error) {
	item, parent, err := c.find(ctx, itemID)
	if err == nil {
		err = c.checkAccess(ctx, parent, user)
	}
	return item, parent, err
}

// checkAccess refuses the items of a private sale to a user whom no access rule fits, as if there were none.
func (c *Checkout) checkAccess(ctx context.Context, parent *sale.Sale, user id.User) error {
	if !parent.Private {
		return nil
	}
	a, _, err := c.cfg.Members.Access(ctx, parent, user)
	if err == nil && a.Rule == nil {
		err = fault.Refused{Why: fault.Unknown, At: []string{"itemId"}}
	}
	return err
}

// newAttempt builds the input of the reserve script; it generates the task id.
func (c *Checkout) newAttempt(in Attempt, parent *sale.Sale, item *sale.Item) (reservation.Attempt, error) {
	task := id.NewTaskOf(parent.ID, item.ID, in.User)
	terms, err := order.Request{
		V: 1, Task: task, User: in.User, Sale: parent.ID, Item: item.ID, Quantity: in.Quantity,
		UnitPriceMinor: item.Price.Minor, Currency: item.Price.Currency,
		PaymentWindowSeconds: int(parent.PaymentWindow / time.Second), IdempotencyKey: in.IdempotencyKey,
	}.ItemTerms()
	if err != nil {
		return reservation.Attempt{}, fmt.Errorf("make attempt: %w", err)
	}
	return reservation.Attempt{
		Task: task, Sale: parent.ID, Item: item.ID, User: in.User, Quantity: in.Quantity,
		Permit: c.cfg.Paths.Permit(in.User, item.ID, in.PathToken), IdempotencyKey: in.IdempotencyKey,
		Terms: terms, OnlyItem: len(parent.Items) == 1, Origin: c.cfg.Persons.Origin(parent.ID, ratelimit.Network(in.From),
			in.Device),
	}, nil
}

func submitted(a reservation.Attempt, o reservation.Outcome) *order.Task {
	return order.NewSubmitted(order.Task{ID: a.Task, User: a.User, Sale: a.Sale, Item: a.Item, Quantity: a.Quantity}, o.At)
}

// refuse maps an outcome without stock to a refusal.
func (c *Checkout) refuse(ctx context.Context, parent *sale.Sale, in Attempt, o reservation.Outcome) (Result, error) {
	switch o.Code {
	case reservation.NotStarted:
		return Result{}, notOpen(sale.PhaseUpcoming, parent, o)
	case reservation.Ended:
		return Result{}, notOpen(sale.PhaseEnded, parent, o)
	case reservation.Paused, reservation.NotLoaded:
		return Result{}, notOpen(closedPhase(parent, o.At), parent, o)
	case reservation.SoldOut: // what remains is for the waitlist
		return Result{}, reservation.NoneLeft{Item: in.Item}
	case reservation.TooFewLeft:
		return Result{}, reservation.NoneLeft{Item: in.Item, Left: max(0, o.Remaining)}
	case reservation.IdempotencyMismatch:
		return Result{}, fault.Refused{Why: fault.IdempotencyMismatch, At: []string{"idempotencyKey"}}
	case reservation.TooManyTries:
		return Result{}, fault.Throttled{RetryAfter: o.RetryAfter}
	case reservation.OverLimit:
		return Result{}, reservation.LimitReached{Limit: limitOf(parent, in.Item), Remaining: o.LimitLeft,
			At: []string{"quantity"}}
	case reservation.OverSaleLimit:
		return Result{}, reservation.LimitReached{Limit: parent.PurchaseLimit, Remaining: o.LimitLeft, WholeSale: true,
			At: []string{"quantity"}}
	case reservation.OverContactLimit:
		return Result{}, personLimit(parent, in.Item, reservation.LimitReached{By: person.Contact, Remaining: o.LimitLeft,
			At: []string{"quantity"}})
	case reservation.OverAddressLimit:
		return Result{}, personLimit(parent, in.Item, reservation.LimitReached{By: person.Address, Remaining: o.LimitLeft,
			At: []string{"quantity"}})
	case reservation.OverCode:
		return Result{}, reservation.LimitReached{By: person.Code, Remaining: o.LimitLeft, At: []string{"quantity"}}
	case reservation.PathInvalid:
		return Result{Task: c.task(ctx, parent, in, o)}, fault.Refused{Why: fault.PathInvalid, At: []string{"pathToken"}}
	case reservation.AlreadyHolding:
		return Result{Task: c.task(ctx, parent, in, o)}, reservation.AlreadyOrdered{Task: o.Task, At: []string{"itemId"}}
	case reservation.Accepted, reservation.Replayed:
	}
	return Result{}, fmt.Errorf("reserve answered %d", o.Code)
}

// personLimit names the limit that the accounts of a person, also deleted ones, share: that of the
// sale, or where it has none, that of the item.
func personLimit(parent *sale.Sale, item id.Item, l reservation.LimitReached) reservation.LimitReached {
	l.Limit, l.WholeSale = parent.PurchaseLimit, parent.PurchaseLimit > 0
	if !l.WholeSale {
		l.Limit = limitOf(parent, item)
	}
	return l
}

// limitOf returns the purchase limit of an item of a sale.
func limitOf(parent *sale.Sale, itemID id.Item) int {
	for _, item := range parent.Items {
		if item.ID == itemID {
			return item.PurchaseLimit
		}
	}
	return 0
}

// closedPhase returns the phase of a sale whose gate is closed: a missing gate before
// the opening means "not open yet", not "paused".
func closedPhase(parent *sale.Sale, at time.Time) sale.Phase {
	phase := parent.Phase(at, false)
	if phase == sale.PhaseLive {
		return sale.PhasePaused
	}
	return phase
}

// notOpen names the opening of the gate, or that of the sale while its gate is not loaded.
func notOpen(phase sale.Phase, parent *sale.Sale, o reservation.Outcome) sale.NotOpen {
	opens := o.Opens
	if opens.UnixMilli() <= 0 {
		opens = parent.StartsAt
	}
	return sale.NewNotOpen(phase, opens, o.At)
}

// task reads the task of the reservation that the gate returned; nil for none: the
// reservations of offers and of orders that were paid late have none. The gate proves that
// the task of a replayed call was accepted: if its record cannot be read, it is returned
// as SUBMITTED, and its status follows later.
func (c *Checkout) task(ctx context.Context, parent *sale.Sale, in Attempt, o reservation.Outcome) *order.Task {
	if o.Task.IsZero() {
		return nil
	}
	task, err := c.cfg.Orders.Task(ctx, o.Task, in.User)
	if err == nil && task != nil || o.Code != reservation.Replayed {
		return task
	}
	return order.NewSubmitted(order.Task{ID: o.Task, User: in.User, Sale: parent.ID, Item: in.Item, Quantity: in.Quantity},
		id.TimeOf(o.Task))
}
