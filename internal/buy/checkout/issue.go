package checkout

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"seckill/internal/buy/access"
	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/admission/risk"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// IssueInput is a request for a path token, a place in the waiting room or one on the waitlist.
type IssueInput struct {
	User    id.User
	Session id.Session // its sign-out removes the waiting-room ticket; not of the waitlist
	Item    id.Item
	From    netip.Addr // address of the request
	Device  string     // id of the browser, "" = unknown
	Captcha captcha.Answer
	Nonce   string // of the client, for the draw; "" = none
}

// Issued is a path token, or a ticket of the waiting room if no permit is free.
type Issued struct {
	Path   path.Path
	Ticket *queue.Ticket
}

// IssuePath exchanges an answered captcha for a path token, or for a ticket of the
// waiting room if no permit is free, other buyers wait, or the sale limits its inflow.
// Requests that the StockCache refuses do not reach Redis and do not use up the
// captcha; nor do those that Redis refused to another buyer at most 20 ms ago, or sent to the
// waiting room, where they cost one batched write.
func (c *Checkout) IssuePath(ctx context.Context, in IssueInput) (Issued, error) {
	item, parent, err := c.findFor(ctx, in.Item, in.User)
	if err != nil {
		return Issued{}, err
	}
	if parent.PreparedBy(in.User) {
		return Issued{}, sale.OwnSale()
	}
	if parent.Draw.On() {
		return Issued{}, drawSale()
	}
	if o, refused := c.cfg.Stock.RefuseUser(item.ID, in.User, reservation.AnyShare); refused {
		_, err = c.refuse(ctx, parent, Attempt{User: in.User, Item: in.Item}, o)
		return Issued{}, err
	}
	request := path.IssueInput{
		Sale: parent.ID, Item: item.ID, User: in.User, From: in.From, Captcha: in.Captcha,
		Waived:   !parent.Switches.CaptchaRequired,
		PerMille: permits(parent), Queued: parent.Switches.InflowPerSecond > 0, Opens: parent.StartsAt,
	}
	recent := c.cfg.Paths.Recent(ctx, request)
	_, full := errors.AsType[path.NoPermit](recent)
	if recent != nil && !full && !c.cfg.Stock.MayHaveReservation(item.ID, in.User) {
		return Issued{}, closedAs(parent, recent)
	}
	allowed, err := c.eligible(ctx, parent, in.User, access.Access.Open)
	if err != nil {
		return Issued{}, err
	}
	if parent.Access.Kept() > 0 {
		if o, refused := c.cfg.Stock.RefuseUser(item.ID, in.User, allowed.Share); refused {
			_, err = c.refuse(ctx, parent, Attempt{User: in.User, Item: in.Item}, o)
			return Issued{}, err
		}
	}
	if request.Persons, err = c.admit(ctx, risk.IssuePath, parent, in); err != nil {
		return Issued{}, err
	}
	request.Persons = request.Persons.Under(allowed)
	if full {
		ticket, err := c.enter(ctx, in, item, parent, entry{request.Persons, true})
		if !errors.Is(err, queue.ErrUnusedPath) {
			return Issued{Ticket: ticket}, err
		}
	}
	issued, err := c.cfg.Paths.Issue(ctx, request)
	if _, full := errors.AsType[path.NoPermit](err); full {
		ticket, err := c.enter(ctx, in, item, parent, entry{request.Persons, false})
		return Issued{Ticket: ticket}, err
	}
	if err == nil {
		c.cfg.Observer.PathIssued(parent.ID)
	}
	return Issued{Path: issued}, named(parent, item.ID, err)
}

// RefuseCaptcha returns the refusal of a captcha for a sale whose answer would bring nothing to a
// user without a reservation: the sale is paused or over, every item is sold out, for the waitlist
// for good, the waitlist is not open yet, or the user has no access, or not yet. What others do is from
// memory, at most a second old.
func (c *Checkout) RefuseCaptcha(ctx context.Context, purpose captcha.Purpose, saleID id.Sale, user id.User) error {
	catalog, err := c.cfg.Catalog.Snapshot(ctx)
	if err != nil {
		return fault.Wrap(fault.Unavailable, "The sales cannot be read now. Please try again shortly.", err)
	}
	parent := catalog.Sale(saleID)
	if parent == nil {
		return nil // the catalogue may be one second old
	}
	now := reservation.Outcome{At: c.cfg.Stock.ServerTime()}
	switch phase := parent.Phase(now.At, false); phase {
	case sale.PhaseLive, sale.PhaseSoldOut:
	case sale.PhaseUpcoming:
		if purpose == captcha.Waitlist {
			return notOpen(phase, parent, now)
		}
	case sale.PhasePaused, sale.PhaseEnded, sale.PhaseCancelled:
		if !slices.ContainsFunc(parent.Items, func(i *sale.Item) bool { return c.mayHold(i.ID, user) }) {
			return notOpen(phase, parent, now)
		}
	}
	allowed, err := c.admits(ctx, parent, user, access.Access.Waits)
	if err != nil {
		return err
	}
	if parent.Draw.On() {
		return drawCaptcha(purpose, parent, now.At)
	}
	if purpose == captcha.Waitlist {
		for _, item := range parent.Items {
			if restock, known := c.cfg.Restock.Of(item.ID); !known || !restock.Gone() {
				return nil
			}
		}
		return reservation.NoneLeft{Item: parent.Items[0].ID}
	}
	var refusal error
	for _, item := range parent.Items {
		o, refused := c.cfg.Stock.RefuseUser(item.ID, user, allowed.Share)
		if !refused || o.Code == reservation.NotStarted {
			return nil
		}
		if _, err := c.refuse(ctx, parent, Attempt{User: user, Item: item.ID}, o); refusal == nil {
			refusal = err
		}
	}
	return refusal
}

// mayHold reports whether a user may have a reservation in a loaded gate.
func (c *Checkout) mayHold(item id.Item, user id.User) bool {
	_, loaded := c.cfg.Stock.View(item)
	return loaded && c.cfg.Stock.MayHaveReservation(item, user)
}

// EnterQueue returns a ticket of the waiting room, also before the opening.
func (c *Checkout) EnterQueue(ctx context.Context, in IssueInput) (*queue.Ticket, error) {
	item, parent, err := c.findFor(ctx, in.Item, in.User)
	if err != nil {
		return nil, err
	}
	if parent.PreparedBy(in.User) {
		return nil, sale.OwnSale()
	}
	if parent.Draw.On() {
		return nil, drawSale()
	}
	allowed, err := c.eligible(ctx, parent, in.User, access.Access.Waits)
	if err != nil {
		return nil, err
	}
	persons, err := c.admit(ctx, risk.EnterQueue, parent, in)
	if err != nil {
		return nil, err
	}
	return c.enter(ctx, in, item, parent, entry{persons.Under(allowed), false})
}

// admit asks the risk service about a buyer, and returns the keys by which the limits of the sale
// count the buyer.
func (c *Checkout) admit(ctx context.Context, action risk.Action, parent *sale.Sale, in IssueInput) (person.Keys,
	error) {
	persons, err := c.personsOf(ctx, parent, in.User)
	if err != nil || c.cfg.Risk == nil {
		return persons, err
	}
	return persons, c.cfg.Risk.Ask(ctx, risk.Question{
		Action: action, User: in.User, Sale: parent.ID, Item: in.Item, From: in.From,
		SinceOpening: c.cfg.Stock.ServerTime().Sub(parent.StartsAt), Orders: c.sharedOrders(ctx, parent, in, persons),
	})
}

// sharedOrders returns the orders in the clusters that a buyer is in or would join.
func (c *Checkout) sharedOrders(ctx context.Context, parent *sale.Sale, in IssueInput,
	persons person.Keys) *risk.Orders {
	joined := order.Order{Persons: persons,
		Origin: c.cfg.Persons.Origin(parent.ID, ratelimit.Network(in.From), in.Device)}
	counts := c.sharing.Orders(ctx, parent.ID, in.User, joined.Labels())
	if counts == nil {
		return nil
	}
	return &risk.Orders{
		Contact: counts[person.Contact], Address: counts[person.Address], Payment: counts[person.Payment],
		Network: counts[person.Network], Browser: counts[person.Device],
	}
}

// entry is how a buyer enters the waiting room; unasked as in queue.EnterInput.
type entry struct {
	persons person.Keys
	unasked bool
}

func (c *Checkout) enter(ctx context.Context, in IssueInput, item *sale.Item, parent *sale.Sale,
	e entry) (*queue.Ticket, error) {
	ticket, err := c.cfg.Queue.Enter(ctx, queue.EnterInput{
		Sale: parent.ID, Item: in.Item, User: in.User, Persons: e.persons, Session: in.Session, From: in.From,
		Captcha: in.Captcha,
		Waived:  !parent.Switches.CaptchaRequired, Opens: parent.StartsAt, Seed: item.DrawSeed, Nonce: in.Nonce,
		Unasked: e.unasked,
	})
	return ticket, named(parent, item.ID, err)
}

// named completes a refusal with what the scripts do not reply: the limit of an item, or that the
// accounts of a person share, and the phase of a sale.
func named(parent *sale.Sale, item id.Item, err error) error {
	if limit, ok := errors.AsType[reservation.LimitReached](err); ok && limit.Limit == 0 {
		return personLimit(parent, item, limit)
	}
	return closedAs(parent, err)
}

// closedAs returns a refusal by a gate that is paused or missing with the phase of its
// sale: the gates of a sale that is over leave Redis, and may be paused until the end is
// written.
func closedAs(parent *sale.Sale, err error) error {
	if refusal, ok := errors.AsType[sale.NotOpen](err); ok && refusal.Phase == sale.PhasePaused {
		refusal.Phase = closedPhase(parent, refusal.ServerTime)
		return refusal
	}
	return err
}

// permits returns the sale's own permit ratio; nil if it is the default, which leaves
// the ratio to the server's settings.
func permits(parent *sale.Sale) *int {
	if parent.Switches.PermitPerMille == sale.DefaultSwitches().PermitPerMille {
		return nil
	}
	return &parent.Switches.PermitPerMille
}

// SaleRules are the present rules of sales before the gate: captcha.SaleRules and
// queue.Sales.
type SaleRules struct {
	Catalog  *sale.Catalog
	Store    *sale.Store
	PerMille int // the server's permit ratio in thousandths
}

// Queue implements queue.Sales.
func (r SaleRules) Queue(ctx context.Context, saleID id.Sale) (queue.Rules, error) {
	parent, err := r.sale(ctx, saleID)
	if parent == nil {
		return queue.Rules{PerMille: r.PerMille}, err // the catalogue may be one second old
	}
	rules := queue.Rules{
		PerMille: r.PerMille, Inflow: parent.Switches.InflowPerSecond,
		Over: parent.Status == sale.Ended || parent.Status == sale.Cancelled,
	}
	if own := permits(parent); own != nil {
		rules.PerMille = *own
	}
	return rules, nil
}

// Gone implements queue.Sales.
func (r SaleRules) Gone(ctx context.Context, item id.Item) (bool, error) {
	return r.Store.Gone(ctx, item)
}

// Captchas implements captcha.SaleRules.
func (r SaleRules) Captchas(ctx context.Context, saleID id.Sale) (captcha.Rules, error) {
	parent, err := r.sale(ctx, saleID)
	if parent == nil {
		return captcha.Rules{}, err
	}
	rules := captcha.Rules{PowMax: parent.Switches.PowMax, Opens: parent.StartsAt}
	for _, kind := range parent.Switches.CaptchaKinds {
		rules.Kinds = append(rules.Kinds, captcha.Kind(kind))
	}
	return rules, nil
}

// sale returns a sale of the catalogue; nil if there is none.
func (r SaleRules) sale(ctx context.Context, saleID id.Sale) (*sale.Sale, error) {
	snap, err := r.Catalog.Snapshot(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "The sales cannot be read now. Please try again shortly.", err)
	}
	return snap.Sale(saleID), nil
}
