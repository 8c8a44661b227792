package operator

import (
	"context"
	"errors"

	"seckill/ent"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// RemoveTestSale ends a sale that the command line made for tests, and hides it from buyers.
// Its record, log and ledger stay, as those of each sale.
func (s *Service) RemoveTestSale(ctx context.Context, of id.Sale, note string) error {
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, of)
		if err != nil || v == nil || v.Status == sale.Cancelled && !v.WasPublic {
			return err
		}
		a, to := act{by: sale.TheClock, what: sale.ActEnd, note: note}, sale.Ended
		if v.Status == sale.Ended || v.Status == sale.Cancelled {
			a.what, to = sale.ActDiscard, sale.Cancelled
			a.set = func(u *ent.SaleUpdate) { u.SetWasPublic(false) }
		}
		line, err := s.try(ctx, a, v, to)
		if errors.Is(err, sale.ErrMoved) {
			continue
		}
		if err != nil {
			return err
		}
		s.forgetCatalog()
		s.publish(ctx, line)
		if err := s.cfg.Gates.SetState(ctx, of); err != nil {
			return err
		}
	}
	return nil
}
