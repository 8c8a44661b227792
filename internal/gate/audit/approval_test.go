package audit_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/testdb"
)

// unopened removes the stock from the ledger, and the gate from Redis, and sets the
// sale's status and epoch.
func (w *world) unopened(status entsale.Status, epoch int64) {
	w.Helper()
	w.must(w.redis.Cmd.Del(w.Context(), w.keys.Item(w.shard(), w.item), w.keys.Reservations(w.shard(), w.item)).Err())
	w.unprotected()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		if _, err := tx.StockMovement.Delete().Exec(ctx); err != nil {
			return err
		}
		return tx.Sale.UpdateOneID(w.sale).SetStatus(status).SetEpoch(epoch).Exec(ctx)
	})
}

func TestASaleThatWasNeverApprovedAddsUpWithoutALedger(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	for _, status := range []entsale.Status{
		entsale.StatusDRAFT, entsale.StatusPENDING_APPROVAL, entsale.StatusREJECTED, entsale.StatusCANCELLED,
	} {
		w.unopened(status, 0)
		if r := w.audit(); !r.OK || r.Postgres.Total != 20 {
			t.Errorf("%s: %+v", status, r)
		}
	}
}

func TestAnApprovedSaleWhoseStockIsNotInTheLedgerIsFound(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	const want = "20 units are put on sale by its row, and 0 by the ledger"
	for _, status := range []entsale.Status{
		entsale.StatusAPPROVED, entsale.StatusSCHEDULED, entsale.StatusPREHEATED, entsale.StatusLIVE,
		entsale.StatusPAUSED, entsale.StatusENDED,
	} {
		w.unopened(status, 0)
		if r := w.audit(); !slices.ContainsFunc(r.Findings, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("%s: %q", status, r.Findings)
		}
	}
	w.unopened(entsale.StatusCANCELLED, 1) // it had a gate, and so was approved
	w.finds(want)
}
