package sale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/auth"
)

// ErrMoved says that somebody else changed the sale first: read it again.
var ErrMoved = errors.New("sale was changed by somebody else")

// ErrForbidden says that the state table does not let this actor make the move.
var ErrForbidden = errors.New("the state table forbids the move")

// Actor is who acts: a person, or the clock.
type Actor struct {
	ID   uuid.UUID // Nil = the clock
	Role auth.Role
}

// Clock reports whether nobody in person acts.
func (a Actor) Clock() bool { return a.ID == uuid.Nil }

// TheClock is the actor of the scheduler.
var TheClock = Actor{}

// Change is an act on a sale as it was read.
type Change struct {
	ID       uuid.UUID // of the log line, made before
	Sale     uuid.UUID
	From     Status // guards, with Revision
	Revision int64
	Act      Act
	To       Status
	By       Actor
	Note     string // why; may be empty
	Details  string // JSON of what changed beside the status; may be empty
	At       time.Time
}

// Apply makes a change in the caller's transaction: a compare-and-set on status
// and revision, with whatever set adds to it, and the line of the log. set may
// be nil. The error wraps ErrMoved when the sale is no longer as it was read,
// and ErrForbidden when the table has no such move for the actor.
func Apply(ctx context.Context, tx *ent.Tx, c Change, set func(*ent.SaleUpdate)) error {
	if !c.allowed() {
		return fmt.Errorf("%s sale %s from %s to %s: %w", c.Act, c.Sale, c.From, c.To, ErrForbidden)
	}
	update := tx.Sale.Update().
		Where(entsale.ID(c.Sale), entsale.StatusEQ(entsale.Status(c.From)), entsale.Revision(c.Revision)).
		SetStatus(entsale.Status(c.To)).SetRevision(c.Revision + 1)
	if set != nil {
		set(update)
	}
	n, err := update.Save(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s sale %s: %w", c.Act, c.Sale, err)
	case n == 0:
		return fmt.Errorf("%s sale %s: %w", c.Act, c.Sale, ErrMoved)
	}
	return c.log(ctx, tx, c.Revision+1)
}

// LogCreation writes the first line of a sale's log in the caller's transaction.
func LogCreation(ctx context.Context, tx *ent.Tx, c Change) error {
	c.Act, c.From, c.To = ActCreate, Draft, Draft
	return c.log(ctx, tx, 1)
}

// Line is how a change that was made stands in the log.
func (c Change) Line() LogLine {
	line := LogLine{
		ID: c.ID, Sale: c.Sale, Act: c.Act, From: c.From, To: c.To, Revision: c.Revision + 1,
		Note: c.Note, Details: c.Details, At: c.At.UTC(),
	}
	if !c.By.Clock() {
		line.Actor = &c.By.ID
	}
	return line
}

func (c Change) allowed() bool {
	for _, m := range moves {
		if m.act == c.Act && m.from == c.From && m.to == c.To && m.mayBeMadeBy(c.By) {
			return true
		}
	}
	return false
}

func (c Change) log(ctx context.Context, tx *ent.Tx, revision int64) error {
	line := tx.SaleLog.Create().SetID(c.ID).SetSaleID(c.Sale).SetAct(string(c.Act)).
		SetFromStatus(string(c.From)).SetToStatus(string(c.To)).SetRevision(revision).
		SetNote(c.Note).SetDetails(c.Details).SetCreatedAt(c.At)
	if !c.By.Clock() {
		line.SetActorID(c.By.ID)
	}
	if err := line.Exec(ctx); err != nil {
		return fmt.Errorf("log %s of sale %s: %w", c.Act, c.Sale, err)
	}
	return nil
}
