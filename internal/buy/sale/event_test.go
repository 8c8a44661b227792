package sale_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/sale"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

func TestAChangeOfStatusIsAnEventForOtherSystems(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	now := time.Now()
	saleID, _ := addSale(t, db, "one", now)
	outbox := webhook.NewOutbox(nil, nil)
	apply := func(c sale.Change) {
		t.Helper()
		c.ID, c.Sale, c.At, c.Outbox = id.New[uuid.UUID](), saleID, now, outbox
		if err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { return sale.Apply(ctx, tx, c, nil) }); err != nil {
			t.Fatal(err)
		}
	}
	err := db.Ent.WebhookEndpoint.Create().SetID(id.New[id.Endpoint]()).SetURL("https://shop.example.com/").SetSecret([]byte("sealed")).
		SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(sale.Change{From: sale.Scheduled, Revision: 1, Act: sale.ActSchedule, To: sale.Scheduled, By: actors["operator"]})
	apply(sale.Change{From: sale.Scheduled, Revision: 2, Act: sale.ActPreheat, To: sale.Preheated})
	rows, err := db.Ent.WebhookEvent.Query().All(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Kind != string(webhook.SaleStateChanged) || rows[0].Subject != saleID.Public() {
		t.Errorf("events %v, %v, want one of the change from SCHEDULED to PREHEATED", rows, err)
	}
}
