package operator

import (
	"context"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
)

// CheckTimes returns all faults of the times of a new sale; a zero end is not checked.
func (s *Service) CheckTimes(starts, ends time.Time) error {
	if ends.IsZero() {
		ends = starts.Add(time.Second)
	}
	return checkTimes(starts, ends, s.cfg.Clock.Now())
}

// CheckUpsertSale returns all faults of the input of UpsertSale.
func (s *Service) CheckUpsertSale(ctx context.Context, d SaleDraft) error {
	v, err := s.cfg.Sales.ByReference(ctx, d.Reference)
	if err != nil {
		return err
	}
	if v == nil {
		return s.CheckSale(ctx, d)
	}
	return s.CheckSaleUpdate(ctx, v.ID, d.patch())
}

// CheckSchedule returns all faults of the input of Schedule.
func (s *Service) CheckSchedule(ctx context.Context, in ScheduleInput) error {
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	if err != nil {
		return err
	}
	if v == nil {
		return unknown("saleId")
	}
	return fault.All(optional(&in.Note, maxNote, "note"), in.of(v).check(s.cfg.Clock.Now()), s.cfg.Payments.CheckSale(v))
}

// CheckExtension returns all faults of the input of Extend.
func (s *Service) CheckExtension(ctx context.Context, in ExtendInput) error {
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	if err != nil {
		return err
	}
	if v == nil {
		return unknown("saleId")
	}
	return fault.All(requireNote(&in.Note), checkEnd(v.EndsAt, in.EndsAt))
}

// checkEnd checks the new end of a sale.
func checkEnd(present, next time.Time) error {
	switch {
	case !next.After(present):
		return invalid(fault.Rule{Code: "after the present end"}, "endsAt")
	case next.After(present.Add(maxExtension)):
		return invalid(fault.Rule{Code: "at most 7 days after the present end"}, "endsAt")
	}
	return nil
}

// CheckAdjustment returns all faults of the input of AdjustStock.
func CheckAdjustment(in AdjustInput) error { return in.check() }

// check returns all faults and trims the note.
func (in *AdjustInput) check() error {
	units := inRange(in.Units, -maxUnits, maxUnits, "units")
	if in.Units == 0 {
		units = invalid(fault.NotZero, "units")
	}
	return fault.All(requireNote(&in.Note), units)
}

// units returns the units of an order to refund.
func (in VoidInput) units(o *order.Order) (int, error) {
	if in.Units != nil && o.Status != order.Paid {
		return 0, invalid(fault.Rule{Code: "none for an unpaid order"}, "quantity")
	}
	return payment.UnitsOf(o, in.Units)
}

// CheckVoid returns all faults of the input of VoidOrder.
func (s *Service) CheckVoid(ctx context.Context, in VoidInput) error {
	note := requireNote(&in.Note)
	o, err := s.cfg.Orders.Reload(ctx, in.Order)
	switch {
	case err != nil:
		return err
	case o == nil:
		return fault.All(unknown("orderId"), note)
	}
	_, err = in.units(o)
	return fault.All(err, note)
}
