package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

func TestUnpaidOrdersAreExpiredFromTheCommandLine(t *testing.T) {
	t.Parallel()
	environ := services(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	seeded := command(t, environ, "seed", "--users", "1", "--stock", "3", "--json")
	seeded.wants(t, exitOK)
	var made seed.Result
	must(json.Unmarshal([]byte(seeded.stdout), &made))
	for account, role := range map[string]string{"ops@example.com": "operator", "clerk@example.com": "customer"} {
		command(t, environ, "user", "create", "--account", account, "--role", role, "--password", "a long enough password").wants(t, exitOK)
	}
	orderID := ordered(t, environ, made, id.New[id.User]()).Public()

	expire := func(code int, complaint string, args ...string) answer {
		t.Helper()
		got := command(t, environ, append([]string{"order", "expire"}, args...)...)
		got.wants(t, code, complaint)
		return got
	}
	expire(exitUnfit, "missing flags: --note", orderID, "--operator", "ops@example.com")
	expire(exitUnfit, "no id of an order", "123", "--operator", "ops@example.com", "--note", "x")
	expire(exitUnfit, "there is no such active user", orderID, "--operator", "unknown@example.com", "--note", "x")
	expire(exitUnfit, "this user is no operator", orderID, "--operator", "clerk@example.com", "--note", "x")
	expire(exitUnfit, "--note: give 1 to 200 characters", orderID, "--operator", "ops@example.com", "--note", " ")
	expire(exitUnfit, "there is no order", id.New[id.Order]().Public(), "--operator", "ops@example.com", "--note", "x")
	if done := expire(exitOK, "", orderID, "--operator", "ops@example.com", "--note", "the bank closed"); !strings.HasSuffix(done.stdout, " is EXPIRED\n") {
		t.Errorf("printed %q", done.stdout)
	}
	expire(exitUnfit, "is EXPIRED: only unpaid orders expire", orderID, "--operator", "ops@example.com", "--note", "x")
}

// ordered writes an unpaid order of a user in a seeded sale.
func ordered(t *testing.T, environ []string, made seed.Result, user id.User) id.Order {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sale, err := id.ParseSale(made.SaleID)
	must(err)
	item, err := id.ParseItem(made.ItemID)
	must(err)
	db := database(t, environ)
	writer := order.NewWriter(order.WriterConfig{
		DB: db, AfterCommit: order.NewAfterCommit(order.AfterCommitConfig{Log: slog.New(slog.DiscardHandler)}), Timeout: testenv.Wait,
	})
	task := id.NewTask(id.ShardOf(sale))
	end := writer.Write(t.Context(), order.Request{
		V: 1, Task: task, User: user, Sale: sale, Item: item, Quantity: 1,
		UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: time.Now().UnixMilli(),
	})[0]
	must(end.Err)
	must(writer.Close(t.Context()))
	return id.Order(task)
}

// database opens the database of an environment until the test ends.
func database(t *testing.T, environ []string) *postgres.DB {
	t.Helper()
	url, _ := lookupIn(environ)("SECKILL_DATABASE_URL")
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
