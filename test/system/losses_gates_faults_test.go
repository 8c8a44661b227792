//go:build faults

package system_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// The gates of 1,000 items, in 20 live sales, are lost at once. It runs beside no other test: their
// load would be measured.
func TestAThousandGatesLostAtOnceSellAgain(t *testing.T) {
	const sales, itemsPerSale, stock = 20, 50, 7
	s, server, client, keys := onOwnRedis(t)
	s.cfg.DatabasePool = config.Default().DatabasePool
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 4, Stock: 3})
	if n := s.buy(made, made.Users[:1]); n != 1 {
		t.Fatal("not accepted")
	}
	gates := s.scheduled(sales, itemsPerSale, stock)
	open := func(epoch string) bool {
		pipe := client.Pipeline()
		found := make([]*redis.SliceCmd, len(gates))
		for i, g := range gates {
			found[i] = pipe.HMGet(t.Context(), keys.Item(id.ShardOf(g.sale), g.item), "gate", "epoch", "stock")
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			return false
		}
		want := []any{reservation.GateOpen, epoch, strconv.Itoa(stock)}
		for _, f := range found {
			if !slices.Equal(f.Val(), want) {
				return false
			}
		}
		return true
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return open("1") }, "all gates are loaded")
	s.drained(made.SaleID, 1)
	lost := time.Now()
	server.FlushAll()
	accepted := false
	testenv.Eventually(t, testenv.Wait, func() bool {
		accepted = accepted || s.tryToBuy(made.Users[1].AccessToken, made)
		return accepted && open("2")
	}, "all gates sell again")
	recovery := time.Since(lost)
	if n := s.buy(made, made.Users[2:]); n != 1 {
		t.Errorf("%d accepted afterwards, want the last unit", n)
	}
	report := s.drained(made.SaleID, 3)
	t.Logf("all sell again after %s", recovery.Round(time.Millisecond))
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: fmt.Sprintf("Redis emptied, %d gates", len(gates)+1), Accepted: 3, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

type gateID struct {
	sale id.Sale
	item id.Item
}

// scheduled inserts sales that the scheduler loads and opens at once, and returns their gates.
func (s *site) scheduled(sales, itemsPerSale, stock int) (gates []gateID) {
	t := s.t
	t.Helper()
	now := time.Now()
	err := s.database().WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		gates = nil
		goods := id.New[id.Goods]()
		if err := tx.Goods.Create().SetID(goods).SetName("Kettle").SetListPriceMinor(9900).SetCurrency("CNY").SetCreatedAt(now).Exec(ctx); err != nil {
			return err
		}
		for range sales {
			v := id.New[id.Sale]()
			if err := tx.Sale.Create().SetID(v).SetSlug(uuid.NewString()).SetTitle("S").SetStatus(entsale.StatusSCHEDULED).
				SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now).
				SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(now).Exec(ctx); err != nil {
				return err
			}
			items := make([]*ent.SaleItemCreate, itemsPerSale)
			for i := range items {
				g := gateID{v, id.New[id.Item]()}
				gates = append(gates, g)
				items[i] = tx.SaleItem.Create().SetID(g.item).SetSaleID(v).SetGoodsID(goods).SetPosition(i).
					SetPriceMinor(4900).SetCurrency("CNY").SetTotal(stock).SetAvailable(stock)
			}
			if err := tx.SaleItem.CreateBulk(items...).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return gates
}
