// Package sandbox is the built-in payment provider: a small bank with its own ledger,
// pages and signed call-backs, for demos and tests. It reproduces the faults of real
// providers: late and duplicate call-backs, and money that arrives after a payment was
// closed.
//
// It owns the sandbox tables and does not know orders: the shop is its only merchant
// and calls it through Provider.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/sandboxcharge"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// delay is how long a call-back is delayed with the habit Delayed.
	delay = 20 * time.Second
	// lateness is how long after the expiry of a charge its money arrives with the
	// habit Late.
	lateness = 5 * time.Second
	// copies is how often a call-back is delivered with the habit Duplicate.
	copies = 3
)

// Habit is how the bank reports an approval.
type Habit string

// Habits of the bank.
const (
	Prompt    Habit = "approve"   // once, immediately
	Delayed   Habit = "delay"     // the money arrives immediately, the call-back later
	Duplicate Habit = "duplicate" // the call-back arrives several times
	Late      Habit = "late"      // the money arrives after the charge expired, even if it was closed
)

// Refusals of the bank.
var (
	ErrUnknown  = errors.New("sandbox: no such charge")
	ErrNotOpen  = errors.New("sandbox: charge is not open")
	ErrTooMuch  = errors.New("sandbox: refund of more than came in")
	ErrMismatch = errors.New("sandbox: same key, other input")
)

// Charge is a payment in the bank's ledger.
type Charge struct {
	ID          uuid.UUID
	Merchant    id.Payment // the merchant's payment id
	Description string
	Language    string // of the page; "" = that of the browser
	ReturnURL   string // page of the merchant; "" = the page leads back nowhere
	AmountMinor int64
	Currency    string
	Status      string // OPEN PAID DECLINED CLOSED
	Transaction string
	Decline     string // why it was DECLINED
	Refunded    int64  // in minor units
	refunds     map[string]int64
	ExpiresAt   time.Time
	PaidAt      *time.Time
	SettlesAt   *time.Time // when late money arrives
}

func fromRow(row *ent.SandboxCharge) *Charge {
	return &Charge{
		ID: row.ID, Merchant: row.MerchantPayment, Description: row.Description, AmountMinor: row.AmountMinor,
		Language: row.Language, ReturnURL: row.ReturnURL,
		Currency: row.Currency, Status: string(row.Status), Transaction: row.Transaction, Decline: row.DeclineCode,
		Refunded: row.RefundedMinor, refunds: row.Refunds,
		ExpiresAt: row.ExpiresAt.UTC(), PaidAt: row.PaidAt, SettlesAt: row.SettlesAt,
	}
}

// Bank is the ledger. It is safe for concurrent use by any number of processes.
type Bank struct {
	db    *postgres.DB
	clock clock.Clock
}

// NewBank returns a bank on a database.
func NewBank(db *postgres.DB, c clock.Clock) *Bank {
	if c == nil {
		c = clock.System{}
	}
	return &Bank{db: db, clock: c}
}

func (b *Bank) now() time.Time { return b.clock.Now().UTC().Truncate(time.Microsecond) }

// Open creates a charge, or returns the existing charge for the merchant's id.
func (b *Bank) Open(ctx context.Context, want Charge) (*Charge, error) {
	err := b.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.SandboxCharge.Create().SetID(id.New[uuid.UUID]()).SetMerchantPayment(want.Merchant).
			SetDescription(want.Description).SetLanguage(want.Language).SetReturnURL(want.ReturnURL).
			SetAmountMinor(want.AmountMinor).SetCurrency(want.Currency).SetExpiresAt(want.ExpiresAt).SetCreatedAt(b.now()).
			Exec(ctx)
	})
	if err != nil && !postgres.IsUnique(err) {
		return nil, fmt.Errorf("open charge: %w", err)
	}
	c, err := b.ByMerchant(ctx, want.Merchant)
	if err != nil {
		return nil, err
	}
	if c.AmountMinor != want.AmountMinor || c.Currency != want.Currency {
		return nil, ErrMismatch
	}
	return c, nil
}

// ByMerchant returns the charge of a merchant's payment.
func (b *Bank) ByMerchant(ctx context.Context, payment id.Payment) (*Charge, error) {
	return found(b.db.Ent.SandboxCharge.Query().Where(sandboxcharge.MerchantPayment(payment)).Only(ctx))
}

// Charge returns a charge.
func (b *Bank) Charge(ctx context.Context, charge uuid.UUID) (*Charge, error) {
	return found(b.db.Ent.SandboxCharge.Get(ctx, charge))
}

func found(row *ent.SandboxCharge, err error) (*Charge, error) {
	if ent.IsNotFound(err) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("read charge: %w", err)
	}
	return fromRow(row), nil
}

// Approve pays a charge; habit determines how the bank reports it.
func (b *Bank) Approve(ctx context.Context, charge uuid.UUID, habit Habit) error {
	now := b.now()
	return b.change(ctx, charge, func(ctx context.Context, tx *ent.Tx, c *Charge) error {
		if c.Status != "OPEN" || c.SettlesAt != nil || !now.Before(c.ExpiresAt) {
			return ErrNotOpen
		}
		switch habit {
		case Late:
			return b.update(ctx, tx, c, func(u *ent.SandboxChargeUpdate) { u.SetSettlesAt(c.ExpiresAt.Add(lateness)) })
		case Delayed:
			return b.pay(ctx, tx, c, report{times: 1, due: now.Add(delay)})
		case Duplicate:
			return b.pay(ctx, tx, c, report{times: copies, due: now})
		case Prompt:
			return b.pay(ctx, tx, c, report{times: 1, due: now})
		}
		return fmt.Errorf("sandbox: no habit %q", habit)
	})
}

// Decline declines a charge for a reason, one of package payment.
func (b *Bank) Decline(ctx context.Context, charge uuid.UUID, reason string) error {
	return b.change(ctx, charge, func(ctx context.Context, tx *ent.Tx, c *Charge) error {
		if c.Status != "OPEN" || c.SettlesAt != nil {
			return ErrNotOpen
		}
		declined := *c
		declined.Status, declined.Decline = "DECLINED", reason
		return b.end(ctx, tx, c, report{declined, 1, b.now()})
	})
}

// Close ensures that a charge can no longer be approved, and returns it. Late money
// that was already approved still arrives.
func (b *Bank) Close(ctx context.Context, payment id.Payment) (*Charge, error) {
	c, err := b.ByMerchant(ctx, payment)
	if err != nil || c.Status != "OPEN" {
		return c, err
	}
	err = b.change(ctx, c.ID, func(ctx context.Context, tx *ent.Tx, c *Charge) error {
		if c.Status != "OPEN" {
			return nil
		}
		return b.update(ctx, tx, c, func(u *ent.SandboxChargeUpdate) { u.SetStatus(sandboxcharge.StatusCLOSED) })
	})
	if err != nil {
		return nil, err
	}
	return b.ByMerchant(ctx, payment)
}

func (b *Bank) settlesLate() []predicate.SandboxCharge {
	return []predicate.SandboxCharge{
		sandboxcharge.SettlesAtLTE(b.now()), sandboxcharge.StatusNEQ(sandboxcharge.StatusPAID),
	}
}

// SettleLate settles late money that is due. It expires no charges: a query after the
// expiry returns the charge as closed.
func (b *Bank) SettleLate(ctx context.Context) (int, error) {
	ids, err := b.db.Ent.SandboxCharge.Query().
		Where(b.settlesLate()...).Limit(perStep).IDs(ctx)
	if err != nil {
		return 0, fmt.Errorf("find late money: %w", err)
	}
	for i, charge := range ids {
		err := b.change(ctx, charge, func(ctx context.Context, tx *ent.Tx, c *Charge) error {
			if c.Status == "PAID" {
				return nil
			}
			return b.pay(ctx, tx, c, report{times: 1, due: b.now()})
		})
		if err != nil {
			return i, err
		}
	}
	return len(ids), nil
}

// Refund refunds money of a paid charge, once per merchant's refund id.
func (b *Bank) Refund(ctx context.Context, payment id.Payment, refund id.Refund, amount int64) error {
	c, err := b.ByMerchant(ctx, payment)
	if err != nil {
		return err
	}
	return b.change(ctx, c.ID, func(ctx context.Context, tx *ent.Tx, c *Charge) error {
		known, repeated := c.refunds[refund.String()]
		switch {
		case repeated && known != amount:
			return ErrMismatch
		case repeated:
			return nil
		case c.Status != "PAID" || c.Refunded+amount > c.AmountMinor:
			return ErrTooMuch
		}
		refunds := map[string]int64{refund.String(): amount}
		maps.Copy(refunds, c.refunds)
		return b.update(ctx, tx, c, func(u *ent.SandboxChargeUpdate) { u.AddRefundedMinor(amount).SetRefunds(refunds) })
	})
}

// maxRaces bounds the retries of a change after a conflict.
const maxRaces = 10

var errRace = errors.New("sandbox: charge was changed by another process")

// change reads a charge and changes it with a compare-and-set.
func (b *Bank) change(ctx context.Context, charge uuid.UUID, do func(context.Context, *ent.Tx, *Charge) error) error {
	err := errRace
	for attempt := 0; attempt < maxRaces && errors.Is(err, errRace); attempt++ {
		err = b.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			c, err := found(tx.SandboxCharge.Get(ctx, charge))
			if err != nil {
				return err
			}
			return do(ctx, tx, c)
		})
	}
	if err != nil {
		return fmt.Errorf("change charge %s: %w", charge, err)
	}
	return nil
}

// update writes a charge, guarded by the version that was read. All writes of a charge
// use it.
func (b *Bank) update(ctx context.Context, tx *ent.Tx, c *Charge, set func(*ent.SandboxChargeUpdate)) error {
	u := tx.SandboxCharge.Update().Where(
		sandboxcharge.ID(c.ID), sandboxcharge.StatusEQ(sandboxcharge.Status(c.Status)),
		sandboxcharge.RefundedMinor(c.Refunded),
	).AddVersion(1)
	set(u)
	n, err := u.Save(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		return errRace
	}
	return nil
}

// report is the result of a charge, and how it is reported to the merchant.
type report struct {
	Charge
	times int
	due   time.Time
}

func (b *Bank) pay(ctx context.Context, tx *ent.Tx, c *Charge, r report) error {
	now := b.now()
	r.Charge = *c
	r.Status, r.Transaction, r.PaidAt = "PAID", "SBX"+strings.ToUpper(strings.ReplaceAll(c.ID.String(), "-", "")), &now
	return b.end(ctx, tx, c, r)
}

// notice is the body of a call-back.
type notice struct {
	ID          string     `json:"id"`
	Type        string     `json:"type"` // charge.paid, charge.declined
	Payment     id.Payment `json:"payment"`
	Charge      uuid.UUID  `json:"charge"`
	Transaction string     `json:"transaction,omitempty"`
	AmountMinor int64      `json:"amountMinor"`
	Currency    string     `json:"currency"`
	Reason      string     `json:"reason,omitempty"` // of a declined charge
	At          time.Time  `json:"at"`
}

// end writes the result of a charge, with the call-back that reports it.
func (b *Bank) end(ctx context.Context, tx *ent.Tx, c *Charge, r report) error {
	body, err := json.Marshal(notice{
		ID: "evt_" + id.New[uuid.UUID]().String(), Type: "charge." + strings.ToLower(r.Status), Payment: r.Merchant,
		Charge:      r.ID,
		Transaction: r.Transaction, AmountMinor: r.AmountMinor, Currency: r.Currency, Reason: r.Decline, At: b.now(),
	})
	if err != nil {
		return err
	}
	return b.update(ctx, tx, c, func(u *ent.SandboxChargeUpdate) {
		u.SetStatus(sandboxcharge.Status(r.Status)).SetTransaction(r.Transaction).SetDeclineCode(r.Decline).
			SetNillablePaidAt(r.PaidAt).
			SetCall(body).SetCallTimes(r.times).SetCallDue(r.due)
	})
}
