package audit_test

import (
	"context"
	"testing"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

// Damage that a loss of Redis, or a step that did not take effect, leaves behind.
func TestDamageAfterALossIsFoundAndNothingElse(t *testing.T) {
	t.Parallel()
	gate := func(w *world, changes map[string]int64) {
		for field, by := range changes {
			w.must(w.redis.Cmd.HIncrBy(w.Context(), w.keys.Item(w.shard(), w.item), field, by).Err())
		}
	}
	status := func(w *world, status entsale.Status) {
		w.update(func(ctx context.Context, tx *ent.Tx) error {
			return tx.Sale.UpdateOneID(w.sale).SetStatus(status).Exec(ctx)
		})
	}
	for name, test := range map[string]struct {
		plant func(w *world)
		want  string
	}{
		"a unit too many at the gate": {func(w *world) {
			gate(w, map[string]int64{"stock": 1, "total": 1})
		}, "21 units were loaded into Redis, and 20 are on sale"},
		"more units reserved than there are": {func(w *world) {
			gate(w, map[string]int64{"stock": -14, "total": -14})
		}, "1 more units are reserved than there are"},
		"an accepted task that Redis lost": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.OrderFailure.Create().SetID(id.NewTask(w.shard())).SetSaleID(w.sale).SetItemID(w.item).SetUserID(w.users[20]).
					SetQuantity(1).SetCode("CONFLICT").SetReason(order.ReasonLost).SetReservedAt(time.Now()).SetCreatedAt(time.Now()).Exec(ctx)
			})
		}, "1 accepted tasks were lost by Redis and failed"},
		"a pause that did not reach the gate": {func(w *world) { status(w, entsale.StatusPAUSED) }, "its gate is open, although its sale is PAUSED"},
		"a pause that Postgres lost": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "gate", reservation.GatePaused).Err())
		}, "its gate is paused, although its sale is"},
		"a share that counts units which its buyers do not have": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "kept", "s0:1:5:3").Err())
		}, "share s0 counts 3 units of its buyers, and their reservations have 0"},
		"shares of more than the stock": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "kept", "s0:9999999999999:14:0").Err())
		}, "shares keep 14 units, and 13 are in stock"},
		"an end that did not reach the gate": {func(w *world) { status(w, entsale.StatusENDED) }, "its gate is open, although its sale is ENDED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, testdb.Postgres(t))
			w.buy(7)
			w.work(4)
			if report := w.audit(); !report.OK {
				t.Fatalf("before: %q", report.Findings)
			}
			test.plant(w)
			w.finds(test.want)
		})
	}
}
