package order

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	entfulfilment "seckill/ent/fulfilment"
	"seckill/ent/orderevent"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

const (
	// maxCorrections bounds the corrections of one order by its buyer: so that an order cannot
	// be handed from person to person.
	maxCorrections = 3
	// maxCorrectionReason bounds a reason in characters.
	maxCorrectionReason = 200
)

// Correction is another recipient of an order.
type Correction struct {
	Order     id.Order
	By        Actor
	Recipient recipient.Recipient
	Reason    string // required from operators
}

// Corrections changes to whom orders go.
type Corrections struct {
	DB          *postgres.DB
	AfterCommit *AfterCommit
	Facts       Facts // nil = pass nothing on
	Clock       clock.Clock
}

// Set changes the recipient of an order whose goods are not on their way, notes it in the
// order's log, and publishes the order. A buyer may do so maxCorrections times. Setting the
// stored recipient again changes nothing. Refusals: INVALID_INPUT; NOT_FOUND; CONFLICT when
// the order has no recipient, has ended, its goods are on their way, it was corrected too
// often, or its buyer names another place in a sale whose limits count addresses.
func (s Corrections) Set(ctx context.Context, in Correction) (o *Order, err error) {
	in.Reason = typed.Text(in.Reason)
	if in.Recipient, err = in.Recipient.Ready(); err != nil {
		return nil, fault.All(err, in.reasonFault())
	}
	if err := in.reasonFault(); err != nil {
		return nil, err
	}
	changed := false
	for range maxFulfilmentTries {
		err = s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			o, changed, err = s.set(ctx, tx, in)
			return err
		})
		if !errors.Is(err, ErrMoved) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if changed {
		s.AfterCommit.Publish(ctx, o)
	}
	return o, nil
}

func (in Correction) reasonFault() error {
	least := 0
	if in.By.Kind == Operator {
		least = 1
	}
	if rule := fault.Lines(in.Reason, least, maxCorrectionReason); rule != (fault.Rule{}) {
		return fault.BadField{At: []string{"reason"}, Rule: rule}
	}
	return nil
}

func (s Corrections) set(ctx context.Context, tx *ent.Tx, in Correction) (*Order, bool, error) {
	at := []string{"orderId"}
	row, err := tx.Order.Get(ctx, in.Order)
	if ent.IsNotFound(err) || err == nil && in.By.Kind == Buyer && row.UserID != in.By.User {
		return nil, false, fault.Refused{Why: fault.Unknown, At: at}
	}
	if err != nil {
		return nil, false, fmt.Errorf("read order %s: %w", in.Order, err)
	}
	o := FromRow(row)
	may, err := correctable(ctx, tx.Client(), o, in.By)
	if err != nil {
		return nil, false, err
	}
	if !may {
		return nil, false, fault.Refused{Why: fault.Conflict, At: at}
	}
	if o.Persons.Address != "" && in.By.Kind == Buyer {
		of, err := recipient.Of(ctx, tx.OrderRecipient, o.ID)
		if err != nil {
			return nil, false, err
		}
		if now, there := of[o.ID]; there && !now.Place().Same(in.Recipient.Place()) {
			return nil, false, fault.Refused{Why: fault.Conflict, At: at} // the limit has counted the former place
		}
	}
	changed, known, err := recipient.Replace(ctx, tx, o.ID, in.Recipient)
	switch {
	case err != nil:
		return nil, false, err
	case !known:
		return nil, false, fault.Refused{Why: fault.Conflict, At: at}
	case !changed:
		return o, false, nil
	}
	noted, err := Note(ctx, tx, o, s.Clock.Now(), Entry{By: in.By, Code: CodeRecipient, Note: in.Reason})
	if err != nil {
		return nil, false, err
	}
	return noted, true, orNone(s.Facts).RecipientChanged(ctx, tx, noted)
}

// correctable reports whether the recipient of an order may be changed. The goods of an order
// that the shop has not mentioned, or that it packs, are not on their way.
func correctable(ctx context.Context, client *ent.Client, o *Order, by Actor) (bool, error) {
	if o.Status != PendingPayment && o.Status != Paid {
		return false, nil
	}
	away, err := client.Fulfilment.Query().
		Where(entfulfilment.ID(o.ID), entfulfilment.StateNEQ(entfulfilment.StatePREPARING)).Exist(ctx)
	if err != nil || away {
		return false, err
	}
	if by.Kind == Operator {
		return true, nil
	}
	n, err := client.OrderEvent.Query().Where(orderevent.OrderID(o.ID),
		orderevent.CodeEQ(orderevent.CodeRECIPIENT_CHANGED), orderevent.ActorEQ(orderevent.ActorBUYER)).Count(ctx)
	return n < maxCorrections, err
}

// CanCorrect reports whether an actor may change the recipient of an order now.
func (s *Store) CanCorrect(ctx context.Context, o *Order, by Actor) (bool, error) {
	may, err := correctable(ctx, s.db.Ent, o, by)
	if err != nil || !may {
		return false, err
	}
	to, err := s.Recipient(ctx, o)
	return to != nil, err
}
