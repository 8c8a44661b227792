// Package inbox collects what waits for a person: approvals of sales, requests that a
// second operator confirms, refunds, dead letters, money that fits nothing, and alarms. It
// counts them, and pushes the count when it changes.
//
// It owns none of them and decides nothing: each is read from, and decided in, the package
// that owns it. Those packages call Reporter after the commit of a change; each process
// with followers then reads once for all of them.
package inbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/staff/operator"
)

// maxPerKind bounds the entries of a kind: more than a person works off in a day.
const maxPerKind = 200

// Kind is the type of an entry.
type Kind string

// Kinds of entries.
const (
	DeadLetter       Kind = "DEAD_LETTER"
	DrawLate         Kind = "DRAW_LATE"  // a draw waits for its random value
	DrawValue        Kind = "DRAW_VALUE" // that an operator entered
	GateLost         Kind = "GATE_LOST"
	OrderReview      Kind = "ORDER_REVIEW"
	OrderVoid        Kind = "ORDER_VOID"
	PaymentDisputed  Kind = "PAYMENT_DISPUTED"
	ProviderAway     Kind = "PROVIDER_AWAY"
	Refund           Kind = "REFUND"
	RefundFailed     Kind = "REFUND_FAILED"
	SaleApproval     Kind = "SALE_APPROVAL"
	SaleExtension    Kind = "SALE_EXTENSION"
	SaleChange       Kind = "SALE_CHANGE"  // of an approved sale or its products
	MoneyReturn      Kind = "MONEY_RETURN" // above the bound of one person
	StockChange      Kind = "STOCK_CHANGE"
	UnmatchedPayment Kind = "UNMATCHED_PAYMENT"
	WebhookDisabled  Kind = "WEBHOOK_DISABLED"
)

// leastRole returns the lowest role that may act on entries of a kind.
func (k Kind) leastRole() auth.Role {
	if k == SaleApproval || k == WebhookDisabled {
		return auth.Admin
	}
	return auth.Operator
}

// Entry is one thing that waits for a person.
type Entry struct {
	Kind    Kind
	Subject string // public id of what waits, or the name of a provider
	Since   time.Time
	Note    string    // why it was asked for, or what is wrong
	Units   int       // that are added to the stock or refunded; of ORDER_REVIEW orders; 0 = none
	Sale    id.Sale   // Nil = none, or that of the order
	Order   id.Order  // Nil = none
	barred  []id.User // users who must not decide
}

// Viewer is a user who reads the inbox.
type Viewer struct {
	ID     id.User
	Role   auth.Role
	agents []id.User // service accounts of the user
}

// Decidable reports whether a viewer may decide about an entry.
func (e Entry) Decidable(v Viewer) bool {
	return !slices.ContainsFunc(e.barred, func(u id.User) bool { return u == v.ID || slices.Contains(v.agents, u) })
}

// Config holds the dependencies of an Inbox.
type Config struct {
	Hub       *notifier.Hub
	Sales     *sale.Store
	Catalog   *sale.Catalog
	Stock     *reservation.StockCache
	Operator  *operator.Service
	Waitlist  *waitlist.Service
	Payments  *payment.Service
	Providers []string // names of the payment providers
	Letters   *deadletter.Store
	Webhooks  *webhook.Service
	Clock     clock.Clock
	Log       *slog.Logger
}

// Inbox reads what waits and follows it. It is safe for concurrent use.
type Inbox struct {
	cfg Config

	mu      sync.Mutex
	entries []Entry   // guarded by mu; as last read for followers
	readAt  time.Time // guarded by mu
	changes int64     // guarded by mu; how often entries changed

	alarms alarms
}

// New returns an Inbox. Run keeps its followers current.
func New(cfg Config) *Inbox { return &Inbox{cfg: cfg, alarms: newAlarms()} }

// Viewer returns a principal as a viewer.
func (b *Inbox) Viewer(ctx context.Context, p *auth.Principal) (Viewer, error) {
	agents, err := b.cfg.Operator.Agents(ctx, p.UserID)
	return Viewer{ID: p.UserID, Role: p.Role, agents: agents}, err
}

// Read returns what waits now, the longest first; at most 200 of each kind.
func (b *Inbox) Read(ctx context.Context) ([]Entry, error) {
	entries := b.alarms.entries(b.cfg.Clock.Now())
	for _, source := range []func(context.Context) ([]Entry, error){b.approvals, b.requests, b.money, b.disputes,
		b.letters, b.endpoints, b.reviews, b.draws} {
		found, err := source(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the inbox: %w", err)
		}
		entries = append(entries, found...)
	}
	slices.SortFunc(entries, func(x, y Entry) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Subject, y.Subject))
	})
	return entries, nil
}

func (b *Inbox) approvals(ctx context.Context) ([]Entry, error) {
	waiting, err := b.cfg.Sales.AwaitingApproval(ctx, maxPerKind)
	entries := collect.Map(waiting, func(w sale.Awaiting) Entry {
		return Entry{Kind: SaleApproval, Subject: w.Sale.Public(), Since: w.Since, Note: w.Note, Sale: w.Sale,
			barred: w.Authors}
	})
	return entries, err
}

// draws are those that wait for their random value: for an hour, or for operators to enter it.
func (b *Inbox) draws(ctx context.Context) ([]Entry, error) {
	late, err := b.cfg.Waitlist.LateDraws(ctx)
	entries := make([]Entry, 0, len(late))
	for _, d := range late[:min(len(late), maxPerKind)] {
		entries = append(entries, Entry{Kind: DrawLate, Subject: d.Item.Public(), Since: d.Since, Sale: d.Sale})
	}
	return entries, err
}

func (b *Inbox) requests(ctx context.Context) ([]Entry, error) {
	waiting, err := b.cfg.Operator.AwaitingSecond(ctx)
	entries := make([]Entry, len(waiting))
	for i, w := range waiting {
		e := Entry{
			Kind: StockChange, Subject: w.ID.Public(), Since: w.CreatedAt, Note: w.Note, Units: w.Units, Sale: w.Sale,
			barred: []id.User{w.RequestedBy},
		}
		switch w.Kind {
		case operator.AdjustStock:
		case operator.ExtendSale:
			e.Kind = SaleExtension
		case operator.ChangeSale, operator.ChangeGoods:
			e.Kind = SaleChange
		case operator.VoidOrder:
			e.Kind = OrderVoid
		case operator.DrawValue:
			e.Kind = DrawValue
		case operator.Refund, operator.SettleRefund, operator.ReturnPayment, operator.SettlePayment:
			e.Kind = MoneyReturn
		}
		if w.Order != nil {
			e.Order, e.barred = *w.Order, append(e.barred, w.Buyer)
		}
		entries[i] = e
	}
	return entries, err
}

func (b *Inbox) money(ctx context.Context) ([]Entry, error) {
	waiting, err := b.cfg.Payments.AwaitingOperator(ctx, maxPerKind)
	entries := make([]Entry, len(waiting))
	for i, w := range waiting {
		e := Entry{Kind: UnmatchedPayment, Since: w.Since(), Order: w.Order, barred: []id.User{w.Buyer}}
		switch {
		case w.Refund == nil:
			e.Subject, e.Note = w.Held.ID.Public(), w.Held.Why
		case w.Refund.Status == payment.RefundGivenUp:
			e.Kind, e.Subject, e.Note, e.Units = RefundFailed, w.Refund.ID.Public(), w.Refund.Failure, w.Refund.Quantity
		default:
			e.Kind, e.Subject, e.Note, e.Units = Refund, w.Refund.ID.Public(), w.Refund.Reason, w.Refund.Quantity
		}
		entries[i] = e
	}
	return entries, err
}

func (b *Inbox) disputes(ctx context.Context) ([]Entry, error) {
	disputed, err := b.cfg.Payments.Disputed(ctx, maxPerKind)
	entries := collect.Map(disputed, func(p *payment.Payment) Entry {
		return Entry{Kind: PaymentDisputed, Subject: p.ID.Public(), Since: p.UpdatedAt, Order: p.Order,
			barred: []id.User{p.User}}
	})
	return entries, err
}

func (b *Inbox) letters(ctx context.Context) ([]Entry, error) {
	letters, err := b.cfg.Letters.List(ctx, deadletter.List{Limit: maxPerKind})
	entries := make([]Entry, len(letters))
	for i, l := range letters {
		entries[i] = Entry{Kind: DeadLetter, Subject: l.ID, Since: l.At, Note: l.Reason}
	}
	return entries, err
}

func (b *Inbox) endpoints(ctx context.Context) (entries []Entry, err error) {
	endpoints, err := b.cfg.Webhooks.Endpoints(ctx)
	for _, e := range endpoints {
		if e.State == webhook.Disabled && e.Reason != "" { // else an administrator did it
			entries = append(entries, Entry{Kind: WebhookDisabled, Subject: e.ID.Public(), Since: e.UpdatedAt, Note: e.Reason})
		}
	}
	return entries, err
}

// reviews has one entry for each sale with orders under review.
func (b *Inbox) reviews(ctx context.Context) ([]Entry, error) {
	sales, err := b.cfg.Payments.Reviews(ctx, maxPerKind)
	entries := make([]Entry, len(sales))
	for i, r := range sales {
		entries[i] = Entry{Kind: OrderReview, Subject: r.Sale.Public(), Since: r.Since, Units: r.Orders, Sale: r.Sale}
	}
	return entries, err
}

// Count is the number of entries of a kind.
type Count struct {
	Kind      Kind
	Count     int  // at most 200
	Decidable int  // that the viewer may decide
	More      bool // Count is the maximum
}

// List is what a viewer sees of the inbox.
type List struct {
	Entries          []Entry
	Counts           []Count // by kind
	Total, Decidable int
}

// For returns what a viewer may act on of some kinds; of every kind when none is given.
func For(v Viewer, entries []Entry, kinds ...Kind) List {
	var out List
	counts := map[Kind]*Count{}
	for _, e := range entries {
		if !v.Role.AtLeast(e.Kind.leastRole()) || len(kinds) > 0 && !slices.Contains(kinds, e.Kind) {
			continue
		}
		c := counts[e.Kind]
		if c == nil {
			c = &Count{Kind: e.Kind}
			counts[e.Kind] = c
		}
		out.Entries = append(out.Entries, e)
		out.Total++
		c.Count++
		if e.Decidable(v) {
			out.Decidable++
			c.Decidable++
		}
	}
	for _, c := range counts {
		c.More = c.Count >= maxPerKind
		out.Counts = append(out.Counts, *c)
	}
	slices.SortFunc(out.Counts, func(x, y Count) int { return cmp.Compare(x.Kind, y.Kind) })
	return out
}
