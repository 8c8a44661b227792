package order_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/internal/fault"
	"seckill/internal/order"
)

func someID(t *rapid.T, name string) uuid.UUID {
	return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
}

func someTime(t *rapid.T, name string) time.Time {
	return time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, name)).UTC()
}

func TestRecordsWrittenByHandAreTheJSONThatTheyReplace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		maybe := func(name string) *time.Time {
			if !rapid.Bool().Draw(t, name+" is there") {
				return nil
			}
			at := someTime(t, name)
			return &at
		}
		o := &order.Order{
			ID: someID(t, "id"), Number: order.Number(someID(t, "of"), someTime(t, "on"), rapid.IntRange(0, 3).Draw(t, "attempt")),
			Sale: someID(t, "sale"), Item: someID(t, "item"), User: someID(t, "user"), Kind: order.Seckill,
			Status: rapid.SampledFrom(order.Statuses()).Draw(t, "status"), Quantity: rapid.Int().Draw(t, "quantity"),
			UnitPriceMinor: rapid.Int64().Draw(t, "price"), Currency: "EUR", Version: rapid.Int64().Draw(t, "version"),
			Epoch: rapid.Int64().Draw(t, "epoch"), ReservedAt: someTime(t, "reserved"), CreatedAt: someTime(t, "created"),
			UpdatedAt: someTime(t, "updated"), PaymentDeadline: maybe("deadline"), PaidAt: maybe("paid"),
		}
		if rapid.Bool().Draw(t, "claimed") {
			claim := someID(t, "claim")
			o.ClaimID = &claim
		}
		byHand, byJSON, err := order.CopyOf(o, rapid.Int64().Draw(t, "copied"))
		if err != nil || string(byHand) != string(byJSON) {
			t.Fatalf("%v\n%s\n%s", err, byHand, byJSON)
		}
		task := order.Task{
			ID: o.ID, User: o.User, Sale: o.Sale, Item: o.Item, Quantity: o.Quantity,
			Status:   rapid.SampledFrom([]order.TaskStatus{order.Submitted, order.Succeeded, order.Failed}).Draw(t, "task"),
			Revision: o.Version, Failure: rapid.SampledFrom([]fault.Reason{"", fault.SoldOut}).Draw(t, "failure"),
			CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
		}
		want, err := order.RecordOf(task)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(task); err != nil || string(got) != string(want) {
			t.Fatalf("%v\n%s\n%s", err, got, want)
		}
	})
}
