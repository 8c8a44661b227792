package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/postgres"
)

const (
	// lastMoment is the time before the deadline in which no new payment may begin: a
	// buyer could not finish it, and the clocks of two processes may differ.
	lastMoment = 5 * time.Second
	// firstCheck is how long after its creation a payment without a report is queried
	// at the provider.
	firstCheck = 20 * time.Second
)

// PayInput is the input of Pay.
type PayInput struct {
	Order          id.Order
	User           id.User // the principal
	Provider       string
	IdempotencyKey string
	Address        string // the buyer's IP address, for providers that require it; may be empty
	Language       locale.Language
	ReturnURL      string // page that the provider leads back to; "" = the page of the order
}

// Paying is an order and the payment that the buyer must complete.
type Paying struct {
	Order    *order.Order // current state, also beside a refusal; nil when the order is not the user's
	Payment  *Payment     // nil when refused
	Replayed bool         // an earlier call with the same key began it
}

// errNotPayable reports that the order or its payment left the open state in the
// meantime.
var errNotPayable = errors.New("order is not to be paid so any more")

// Pay begins a payment of an order. The same key returns the same payment. Another key
// returns the open payment, if its provider confirms that it is open: an order has at
// most one open payment. An open payment at another provider, or that leads back to another
// page, is closed first.
func (s *Service) Pay(ctx context.Context, in PayInput) (Paying, error) {
	if in.ReturnURL != "" && !s.cfg.Returns.Has(in.ReturnURL) {
		return Paying{}, fault.BadField{At: []string{"returnUrl"}, Rule: fault.AllowedOrigin}
	}
	for range maxRaces {
		paying, err := s.tryPay(ctx, in)
		if err == nil || !(errors.Is(err, errNotPayable) || postgres.IsUnique(err)) {
			return paying, err
		}
	}
	return Paying{}, fault.New(fault.Unavailable, "The order is being changed. Please try again.")
}

func (s *Service) tryPay(ctx context.Context, in PayInput) (Paying, error) {
	o, err := s.own(ctx, in.Order, in.User)
	if o == nil {
		return Paying{}, err
	}
	p, err := s.byKey(ctx, o.ID, in.IdempotencyKey)
	if err != nil {
		return Paying{}, err
	}
	if p != nil && !p.asIn(in) {
		return Paying{Order: o}, fault.Refused{Why: fault.IdempotencyMismatch, At: []string{"idempotencyKey"}}
	}
	if p != nil {
		p, err = s.create(ctx, p, in.Address)
		return Paying{Order: o, Payment: p, Replayed: true}, err
	}
	now := s.now()
	if err := notPayable(o, now); err != nil {
		return Paying{Order: o}, err
	}
	if o, err = s.review(ctx, o); err != nil {
		return Paying{Order: o}, err
	}
	if provider := s.providers[in.Provider]; provider == nil || !provider.Terms().takes(o) {
		return Paying{Order: o}, errNotOffered
	}
	if s.breakers.away(in.Provider, now) {
		return Paying{Order: o}, errAway()
	}
	if p, err = s.openOf(ctx, o.ID); err != nil {
		return Paying{}, err
	}
	switch {
	case p == nil:
		if p, err = s.begin(ctx, o, in, now); err != nil {
			return Paying{}, err
		}
	case !p.asIn(in):
		if s.closeOne(ctx, p) == closedNot {
			return Paying{}, fault.New(fault.Unavailable, "The open payment cannot be closed yet. Please try again.")
		}
		return Paying{}, errNotPayable // the next try reads the new state
	case s.over(ctx, p):
		return Paying{}, errNotPayable
	}
	p, err = s.create(ctx, p, in.Address)
	return Paying{Order: o, Payment: p}, err
}

func (p *Payment) asIn(in PayInput) bool {
	return p.Provider == in.Provider && p.ReturnURL == in.ReturnURL
}

// errNotOffered refuses a provider that does not take the order.
var errNotOffered = fault.BadField{At: []string{"optionId"}, Rule: fault.NotOffered}

// refuse closes a payment that its provider has refused to make, so that the buyer may choose
// another provider, and returns the refusal.
func (s *Service) refuse(ctx context.Context, p *Payment, why error) error {
	s.cfg.Log.ErrorContext(ctx, "payment provider refuses a payment", slog.String("provider", p.Provider),
		slog.String("payment", p.ID.String()), slog.Any("error", why))
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Payment.Update().Where(entpayment.ID(p.ID), entpayment.StatusEQ(entpayment.StatusCREATING)).
			SetStatus(entpayment.StatusCLOSED).SetDeclined(true).SetFailureCode(string(NotSupported)).AddVersion(1).
			SetUpdatedAt(s.now()).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("note refusal of payment %s: %w", p.ID, err)
	}
	return errNotOffered
}

func errAway() error {
	return fault.New(fault.Unavailable, "The payment provider does not answer. Choose another one, or try again in half a minute.")
}

// over asks the provider whether an open payment has already ended without a report, so
// that a declined buyer can start a new payment at once. Without a reply the payment
// counts as open.
func (s *Service) over(ctx context.Context, p *Payment) bool {
	if p.Status != Pending {
		return false
	}
	found, err := s.check(ctx, p)
	return err == nil && found != ""
}

// reload returns an order from Postgres. One that is not there is refused: after a failover, that may be
// an order that was read a moment ago.
func (s *Service) reload(ctx context.Context, id id.Order) (*order.Order, error) {
	o, err := s.cfg.Orders.Reload(ctx, id)
	if err == nil && o == nil {
		err = fault.Refused{Why: fault.Unknown, At: []string{"orderId"}}
	}
	return o, err
}

// own returns an order from Postgres if it belongs to the user.
func (s *Service) own(ctx context.Context, id id.Order, user id.User) (*order.Order, error) {
	o, err := s.reload(ctx, id)
	if err != nil {
		return nil, err
	}
	if o.User != user {
		return nil, fault.Refused{Why: fault.Unknown, At: []string{"orderId"}}
	}
	return o, nil
}

func notPayable(o *order.Order, now time.Time) error {
	at := []string{"orderId"}
	switch {
	case o.Status == order.Expired:
		return fault.Refused{Why: fault.OrderExpired, At: at}
	case o.Status != order.PendingPayment:
		return fault.Refused{Why: fault.Conflict, At: at}
	case o.PaymentDeadline != nil && !now.Before(o.PaymentDeadline.Add(-lastMoment)):
		return fault.Refused{Why: fault.OrderExpired, At: at}
	}
	return nil
}

// begin writes the payment before the provider is called. It updates the order's row,
// so that a concurrent cancel either sees the payment or makes begin fail.
func (s *Service) begin(ctx context.Context, o *order.Order, in PayInput, now time.Time) (*Payment, error) {
	var p *Payment
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.Order.Update().
			Where(entorder.ID(o.ID), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.Version(o.Version)).
			SetUpdatedAt(o.UpdatedAt).Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return errNotPayable
		}
		item, err := tx.SaleItem.Get(ctx, o.Item)
		if err != nil {
			return err
		}
		goods, err := tx.Goods.Get(ctx, item.GoodsID)
		if err != nil {
			return err
		}
		row, err := tx.Payment.Create().SetID(id.New[id.Payment]()).SetOrderID(o.ID).SetUserID(o.User).
			SetProvider(in.Provider).SetProduct(goods.Name).SetLanguage(string(in.Language)).SetReturnURL(in.ReturnURL).
			SetIdempotencyKey(in.IdempotencyKey).SetAmountMinor(o.TotalMinor()).SetCurrency(o.Currency).
			SetExpiresAt(*o.PaymentDeadline).SetCheckAt(now.Add(firstCheck)).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		p = fromRow(row)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("begin payment of order %s: %w", o.ID, err)
	}
	s.metrics.result(p.Provider, resultCreated)
	return p, nil
}

// create opens a payment at the provider, unless that has been done. The call may be
// repeated, because the provider identifies the payment by its id.
func (s *Service) create(ctx context.Context, p *Payment, address string) (*Payment, error) {
	if p.Status != Creating {
		return p, nil
	}
	var made Created
	known, err := s.knownTo(ctx, p)
	if err != nil {
		return nil, err
	}
	provider, err := s.provider(p.Provider)
	if err == nil {
		err = s.ask(ctx, p.Provider, "create", func(ctx context.Context) (err error) {
			input := known.CreateInput
			input.Address = address
			made, err = provider.Create(ctx, input)
			return err
		})
	}
	if isRequestRefused(err) {
		return nil, s.refuse(ctx, p, err)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "The payment provider does not answer. Please try again.", err)
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		// The update matches no row if the report of the provider came first.
		return tx.Payment.Update().Where(entpayment.ID(p.ID), entpayment.StatusEQ(entpayment.StatusCREATING)).
			SetStatus(entpayment.StatusPENDING).SetProviderRef(made.Ref).SetQrCode(made.QRCode).SetRedirectURL(made.RedirectURL).
			SetClientSecret(made.ClientSecret).
			AddVersion(1).SetUpdatedAt(s.now()).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("note creation of payment %s: %w", p.ID, err)
	}
	return s.Payment(ctx, p.ID)
}
