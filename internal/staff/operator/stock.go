package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/intervention"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// The order of writes to the two stores keeps a change of stock safe.
//
// Added units are written to Postgres first and added to the gate afterwards, so that the
// gate never sells units that Postgres does not have. The row in state FINISHING means
// that the gate does not have them yet. The gate counts an intervention once, and a gate
// built meanwhile from Postgres records the interventions that its stock includes.
//
// Removed units are taken from the gate first, because only the gate knows the orders in
// transit to Postgres, and from Postgres afterwards. So no buyer is accepted for a unit
// that Postgres does not have. Postgres releases them only while the gate has the same
// epoch: a gate rebuilt from Postgres has the units again, and the removal starts over.
// For a sale that is not in Redis, only Postgres is changed.

// AdjustInput is the input of AdjustStock.
type AdjustInput struct {
	By    sale.Actor
	Item  id.Item
	Units int // signed
	Note  string
	// Key makes a repeated call return the same intervention: chosen by the client, per
	// user.
	Key string
}

// namespace is the UUID namespace of ids derived from a user and a key.
var namespace = uuid.MustParse("6f6c1d3e-64a7-4f5b-8a55-0b5e6e5c7a11")

func actID(by id.User, what, key string) id.Act {
	return id.Act(uuid.NewSHA1(namespace, []byte(by.String()+"|"+what+"|"+key)))
}

// AdjustStock adds units to an item, or removes available units. For a removal, and once the
// units added without confirmation to an item within 24 h exceed Config.TwoPersonUnits, it
// creates a request instead. The state is FINISHING or TAKING if Redis did not answer in time.
func (s *Service) AdjustStock(ctx context.Context, in AdjustInput) (*Intervention, error) {
	if err := authorise(in.By, sale.ActAdjust); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	act := &Intervention{
		ID: id.Act(s.cfg.NewID()), Kind: AdjustStock, Item: in.Item, Units: in.Units, Note: in.Note, RequestedBy: in.By.ID,
	}
	if in.Key != "" {
		act.ID = actID(in.By.ID, "adjust", in.Key)
		if before, err := s.Intervention(ctx, act.ID); before != nil || err != nil {
			return replayed(before, act), cmp.Or(err, mismatch(before, act))
		}
	}
	row, err := s.cfg.DB.Ent.SaleItem.Get(ctx, in.Item)
	if ent.IsNotFound(err) {
		return nil, unknown("itemId")
	}
	if err != nil {
		return nil, fmt.Errorf("read item %s: %w", in.Item, err)
	}
	act.Sale = row.SaleID
	return s.adjust(ctx, in.By, act)
}

// replayed returns the earlier intervention of a key, if it has the same input.
func replayed(before, act *Intervention) *Intervention {
	if mismatch(before, act) != nil {
		return nil
	}
	return before
}

func mismatch(before, act *Intervention) error {
	if before == nil || (before.Item == act.Item && before.Units == act.Units && before.Note == act.Note) {
		return nil
	}
	return refused(fault.IdempotencyMismatch, []string{"idempotencyKey"})
}

// request records a request for confirmation, and publishes it.
func (s *Service) request(ctx context.Context, act *Intervention) (*Intervention, error) {
	asks := map[Kind]sale.Act{
		AdjustStock: ActRequestAdjust, ExtendSale: ActRequestExtend, ChangeSale: ActRequestChange,
		ChangeGoods: ActRequestGoods, DrawValue: ActRequestValue,
	}[act.Kind]
	v, err := s.cfg.Sales.ByID(ctx, act.Sale)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, unknown("saleId")
	}
	act.State = Requested
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.insert(ctx, tx, act) })
	if postgres.IsUnique(err) {
		return s.Intervention(ctx, act.ID) // concurrent call with the same key
	}
	if err != nil {
		return nil, unknownOutcome(err)
	}
	s.publishRequest(ctx, v, act, asks)
	return act, nil
}

// adjust begins a change of stock: a new one, or a confirmed request.
func (s *Service) adjust(ctx context.Context, by sale.Actor, act *Intervention) (*Intervention, error) {
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, act.Sale)
		if err != nil {
			return nil, err
		}
		if v == nil || len(sale.Targets(sale.ActAdjust, v.Status)) == 0 {
			return nil, conflict("itemId")
		}
		if act.Units < 0 && act.State == "" {
			free := available(v, act.Item)
			if !v.Status.Loaded() { // a gate knows what is left of the shares
				free -= v.Access.Kept()
			}
			if free < -act.Units {
				return nil, tooFew()
			}
			return s.request(ctx, act)
		}
		if act.Units < 0 && v.Status.Loaded() {
			return s.takeOff(ctx, act)
		}
		to := Done
		if v.Status.Loaded() {
			to = Finishing
		}
		err = s.writeStock(ctx, by, v, act, to)
		switch {
		case errors.Is(err, sale.ErrMoved):
			continue
		case errors.Is(err, errTooFew):
			return nil, tooFew()
		case errors.Is(err, errNeedsSecond):
			return s.request(ctx, act)
		case errors.Is(err, errConflict), postgres.IsUnique(err): // concurrent call elsewhere
			return s.Intervention(ctx, act.ID)
		case err != nil:
			return nil, unknownOutcome(err)
		}
		act.State = to
		return s.tryFinish(ctx, act), nil
	}
	return nil, conflict("itemId")
}

// available returns the units of an item that no order has by Postgres. A gate never has
// more, and has fewer while orders are in transit.
func available(v *sale.Sale, item id.Item) int {
	for _, it := range v.Items {
		if it.ID == item {
			return it.Available
		}
	}
	return 0
}

// errTooFew reports that Postgres has fewer available units than are to be removed.
var errTooFew = errors.New("fewer units are left")

// writeStock changes Postgres in one transaction: the sale's revision and log, the item,
// the ledger, and the state of the intervention.
func (s *Service) writeStock(ctx context.Context, by sale.Actor, v *sale.Sale, act *Intervention, to State) error {
	details, err := act.details()
	if err != nil {
		return err
	}
	c := sale.Change{
		ID: s.cfg.NewID(), Sale: v.ID, From: v.Status, To: v.Status, Revision: v.Revision, Act: sale.ActAdjust,
		By: by, Note: act.Note, Details: details, At: s.cfg.Clock.Now(),
	}
	err = s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := sale.Apply(ctx, tx, c, func(u *ent.SaleUpdate) { u.Where(entsale.Epoch(v.Epoch)) }); err != nil {
			return err
		}
		if err := s.checkAlone(ctx, tx, act); err != nil { // after locking the sale's row, which serialises adjustments
			return err
		}
		if err := s.record(ctx, tx, act, to); err != nil {
			return err
		}
		if err := s.ledger(ctx, tx, act); err != nil {
			return err
		}
		least := -act.Units
		if act.Units < 0 && !v.Status.Loaded() { // a gate knows what is left of the shares
			least += v.Access.Kept()
		}
		n, err := tx.SaleItem.Update().Where(saleitem.ID(act.Item), saleitem.AvailableGTE(least)).
			AddTotal(act.Units).AddAvailable(act.Units).AddRevision(1).Save(ctx)
		switch {
		case err != nil:
			return err
		case n == 0:
			return errTooFew
		case act.Units > 0:
			return nil
		}
		return s.cfg.Facts.UnitsLost(ctx, tx, act.Item, order.LostUnits{Available: -act.Units, Total: -act.Units, At: c.At})
	})
	if err != nil {
		return err
	}
	s.forgetCatalog()
	s.publish(ctx, c.Line())
	return nil
}

// errNeedsSecond reports that an adjustment needs confirmation by a second operator.
var errNeedsSecond = errors.New("a second person has to confirm")

// aloneWindow is the period over which units added without confirmation are summed.
const aloneWindow = 24 * time.Hour

// checkAlone returns errNeedsSecond for a new adjustment that exceeds the units allowed
// without confirmation.
func (s *Service) checkAlone(ctx context.Context, tx *ent.Tx, act *Intervention) error {
	if act.State != "" || act.Units <= 0 {
		return nil // confirmed, or a removal
	}
	before, err := tx.Intervention.Query().Where(
		intervention.ItemID(act.Item), intervention.KindEQ(intervention.KindADJUST_STOCK), intervention.QuantityGT(0),
		intervention.DecidedByIsNil(), intervention.StateIn(intervention.StateFINISHING, intervention.StateDONE),
		intervention.CreatedAtGT(s.cfg.Clock.Now().Add(-aloneWindow)),
	).Select(intervention.FieldQuantity).Ints(ctx)
	if err != nil {
		return fmt.Errorf("sum adjustments of item %s: %w", act.Item, err)
	}
	sum := act.Units
	for _, units := range before {
		sum += units
	}
	if sum > s.cfg.TwoPersonUnits {
		return errNeedsSecond
	}
	return nil
}

// record writes the state of an intervention: a new one is inserted.
func (s *Service) record(ctx context.Context, tx *ent.Tx, act *Intervention, to State) error {
	if act.State != "" {
		return s.advance(ctx, tx, act, to)
	}
	fresh := *act
	fresh.State = to
	return s.insert(ctx, tx, &fresh)
}

func (s *Service) ledger(ctx context.Context, tx *ent.Tx, act *Intervention) error {
	return tx.StockMovement.Create().SetID(s.cfg.NewID()).SetOrderID(act.ID.UUID()).SetItemID(act.Item).
		SetKind(stockmovement.KindADJUST).SetQuantity(act.Units).SetCreatedAt(s.cfg.Clock.Now()).Exec(ctx)
}

// takeOff takes units from a loaded gate, and then from Postgres.
func (s *Service) takeOff(ctx context.Context, act *Intervention) (*Intervention, error) {
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.record(ctx, tx, act, Taking) })
	switch {
	case errors.Is(err, errConflict), postgres.IsUnique(err):
		return s.Intervention(ctx, act.ID)
	case err != nil:
		return nil, unknownOutcome(err)
	}
	act.State = Taking
	act = s.tryFinish(ctx, act)
	if act.State == Refused {
		return act, tooFew()
	}
	return act, nil
}

// tryFinish finishes an intervention, or leaves it to Step.
func (s *Service) tryFinish(ctx context.Context, act *Intervention) *Intervention {
	now, err := s.finish(ctx, act)
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "an intervention is finished later",
			slog.String("intervention", act.ID.Public()), slog.String("state", string(act.State)), slog.Any("error", err))
		return act
	}
	if s.cfg.Stock == nil {
		return now
	}
	if err := s.cfg.Stock.Refresh(ctx); err != nil {
		s.cfg.Log.WarnContext(ctx, "gates are seen later", slog.Any("error", err))
	}
	return now
}

func (act *Intervention) adjustment() reservation.Adjustment {
	return reservation.Adjustment{Sale: act.Sale, Item: act.Item, Act: act.ID, Units: act.Units}
}
