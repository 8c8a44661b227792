package checkout

import (
	"context"
	"net/netip"

	"github.com/google/uuid"

	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/admission/queue"
	"seckill/internal/fault"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/salestats"
)

// IssueInput asks for the right to try for an item.
type IssueInput struct {
	User    uuid.UUID
	Session uuid.UUID // its end gives a place in the waiting room up
	Item    uuid.UUID
	From    netip.Addr // where the request came from
	Captcha captcha.Answer
}

// Issued is a path, or a place in the waiting room while there is none.
type Issued struct {
	Path   path.Path
	Ticket *queue.Ticket
}

// IssuePath trades an answered captcha for a path, or for a place in the waiting
// room when all permits are out, others wait, or the sale limits its inflow. What
// is hopeless by this process's own view of the gate is refused before Redis and
// costs no captcha.
func (c *Checkout) IssuePath(ctx context.Context, in IssueInput) (Issued, fault.Refusal, error) {
	item, parent, refusal, err := c.find(ctx, in.Item)
	if refusal != nil || err != nil {
		return Issued{}, refusal, err
	}
	if o, refused := c.stock.Refuse(item.ID); refused {
		_, refusal, err := c.refuse(ctx, parent, PlaceInput{User: in.User, Item: in.Item}, o)
		return Issued{}, refusal, err
	}
	issued, refusal, err := c.paths.Issue(ctx, path.IssueInput{
		Sale: parent.ID, Item: item.ID, User: in.User, From: in.From, Captcha: in.Captcha, Waived: !parent.Switches.CaptchaRequired,
		PerMille: permits(parent), Queued: parent.Switches.InflowPerSecond > 0, Opens: parent.StartsAt,
	})
	if _, full := refusal.(path.NoPermit); full && err == nil {
		ticket, refusal, err := c.enter(ctx, in, parent)
		return Issued{Ticket: ticket}, refusal, err
	}
	if refusal == nil && err == nil {
		c.stepped(parent.ID, salestats.StepPath, 1)
	}
	return Issued{Path: issued}, limited(refusal, parent), err
}

// EnterQueue gives a place in the waiting room, also before the opening.
func (c *Checkout) EnterQueue(ctx context.Context, in IssueInput) (*queue.Ticket, fault.Refusal, error) {
	_, parent, refusal, err := c.find(ctx, in.Item)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	return c.enter(ctx, in, parent)
}

func (c *Checkout) enter(ctx context.Context, in IssueInput, parent *sale.Sale) (*queue.Ticket, fault.Refusal, error) {
	ticket, refusal, err := c.queue.Enter(ctx, queue.EnterInput{
		Sale: parent.ID, Item: in.Item, User: in.User, Session: in.Session, From: in.From, Captcha: in.Captcha,
		Waived: !parent.Switches.CaptchaRequired, Opens: parent.StartsAt,
	})
	return ticket, limited(refusal, parent), err
}

// limited tells the limit of the sale, which the gate's scripts do not know.
func limited(refusal fault.Refusal, parent *sale.Sale) fault.Refusal {
	if limit, ok := refusal.(reservation.LimitReached); ok {
		limit.Limit = parent.PurchaseLimit
		return limit
	}
	return refusal
}

// permits is the sale's own ratio of permits; nil when nobody switched it, which
// leaves the ratio to the settings of the server.
func permits(parent *sale.Sale) *int {
	if parent.Switches.PermitPerMille == sale.DefaultSwitches().PermitPerMille {
		return nil
	}
	return &parent.Switches.PermitPerMille
}

// QueueRules returns what the waiting room of an item follows: a queue.Config's
// Rules. perMille is the server's own ratio of permits.
func QueueRules(catalog *sale.Catalog, perMille int) func(ctx context.Context, saleID, itemID uuid.UUID) (queue.Rules, error) {
	return func(ctx context.Context, saleID, _ uuid.UUID) (queue.Rules, error) {
		snap, err := catalog.Snapshot(ctx)
		if err != nil {
			return queue.Rules{}, fault.Wrap(fault.Unavailable, "the catalogue cannot be read", err)
		}
		parent := snap.Sale(saleID)
		if parent == nil {
			return queue.Rules{PerMille: perMille}, nil // the catalogue may be a second behind
		}
		rules := queue.Rules{
			PerMille: perMille, Inflow: parent.Switches.InflowPerSecond,
			Over: parent.Status == sale.Ended || parent.Status == sale.Cancelled,
		}
		if own := permits(parent); own != nil {
			rules.PerMille = *own
		}
		return rules, nil
	}
}

// CaptchaRules returns what a sale wants of captchas now: a captcha.Config's Rules.
func CaptchaRules(catalog *sale.Catalog) func(ctx context.Context, saleID uuid.UUID) (captcha.Rules, error) {
	return func(ctx context.Context, saleID uuid.UUID) (captcha.Rules, error) {
		snap, err := catalog.Snapshot(ctx)
		if err != nil {
			return captcha.Rules{}, fault.Wrap(fault.Unavailable, "the catalogue cannot be read", err)
		}
		parent := snap.Sale(saleID)
		if parent == nil {
			return captcha.Rules{}, nil
		}
		rules := captcha.Rules{PowMax: parent.Switches.PowMax}
		for _, kind := range parent.Switches.CaptchaKinds {
			rules.Kinds = append(rules.Kinds, captcha.Kind(kind))
		}
		return rules, nil
	}
}
