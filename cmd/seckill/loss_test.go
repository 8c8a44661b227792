package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/recordloss"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestDoctorListsWhatALossOfCommitsConcerns(t *testing.T) {
	t.Parallel()
	environ := services(t)
	none := command(t, environ, "doctor", "--after-restore")
	none.wants(t, exitOK)
	if !strings.Contains(none.stdout, "no loss of commits") || !strings.Contains(none.stdout, "concerned  0;") {
		t.Errorf("printed %q", none.stdout)
	}
	url, _ := lookupIn(environ)("SECKILL_DATABASE_URL")
	prefix, _ := lookupIn(environ)("SECKILL_REDIS_PREFIX")
	conn, _ := testenv.Redis(t)
	saleID, now := id.New[id.Sale](), time.Now()
	gone := &order.Order{
		ID: id.Order(id.NewTask(id.ShardOf(saleID))), Sale: saleID, Item: id.New[id.Item](), User: id.New[id.User](), Kind: order.Seckill, Status: order.Paid,
		Quantity: 1, UnitPriceMinor: 100, Currency: "EUR", Version: 2, Epoch: 1, ReservedAt: now, CreatedAt: now, UpdatedAt: now,
	}
	if err := order.NewCache(conn, reservation.Keys{Prefix: prefix}.Tasks, clock.System{}).Put(t.Context(), nil, []*order.Order{gone}); err != nil {
		t.Fatal(err)
	}
	err := testdb.Open(t, url).Ent.RecordMark.Create().SetID(1).SetMark(9).SetLost(8).SetLostAt(now).SetMarkedAt(now).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := command(t, environ, "doctor", "--after-restore")
	table.wants(t, exitFinding)
	for _, part := range []string{"do not follow Postgres yet", "ORDER_MISSING  " + gone.ID.Public(), "seen PAID", "Postgres -", "concerned      1;", "seckill payments reconcile"} {
		if !strings.Contains(table.stdout, part) {
			t.Errorf("no %q in\n%s", part, table.stdout)
		}
	}
	var report recordloss.Report
	printed := command(t, environ, "doctor", "--after-restore", "--json")
	printed.wants(t, exitFinding)
	if err := json.Unmarshal([]byte(printed.stdout), &report); err != nil || report.LostAt == nil || report.Recovered || len(report.Concerns) != 1 || report.Concerns[0].Order != gone.ID.Public() {
		t.Errorf("%+v, %v", report, err)
	}
}
