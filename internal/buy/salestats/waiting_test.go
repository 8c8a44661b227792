package salestats_test

import (
	"testing"
	"time"

	"seckill/ent/waitlistentry"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/id"
)

func TestFiguresOfAnItemHaveItsUnitsAndItsWaitlist(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		e.must(e.db.Ent.SaleItem.UpdateOneID(e.item).SetAvailable(0).SetHeld(28).SetSold(70).SetTotal(98).Exec(t.Context()))
		for i, status := range []waitlistentry.Status{"WAITING", "WAITING", "WAITING", "OFFERED", "LEFT"} {
			now := e.clock.Now().Add(time.Duration(i) * time.Second)
			e.must(e.db.Ent.WaitlistEntry.Create().SetID(id.New[id.Waitlist]()).SetSaleID(e.sale).SetItemID(e.item).SetUserID(id.New[id.User]()).SetStatus(status).
				SetQuantity(2).SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context()))
		}
		s := e.stats()
		want := salestats.ItemFigures{Item: e.item, Total: 98, Held: 28, Sold: 70, Offered: 2, Waiting: 3}
		if s.Waiting != 3 || len(s.Items) != 1 || s.Items[0] != want {
			t.Errorf("%d wait, items %+v, want %+v", s.Waiting, s.Items, want)
		}
	})
}
