package order_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func someID[T ~[16]byte](t *rapid.T, name string) T {
	return T([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name)))
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
			ID: someID[id.Order](t, "id"), Number: order.Number(someID[id.Order](t, "of"), someTime(t, "on"), rapid.IntRange(0, 3).Draw(t, "attempt")),
			Sale: someID[id.Sale](t, "sale"), Item: someID[id.Item](t, "item"), User: someID[id.User](t, "user"), Kind: order.Seckill,
			Status: rapid.SampledFrom(order.Statuses()).Draw(t, "status"), Quantity: rapid.Int().Draw(t, "quantity"),
			UnitPriceMinor: rapid.Int64().Draw(t, "price"), Currency: "EUR", Version: rapid.Int64().Draw(t, "version"),
			Epoch: rapid.Int64().Draw(t, "epoch"), ReservedAt: someTime(t, "reserved"), CreatedAt: someTime(t, "created"),
			UpdatedAt: someTime(t, "updated"), PaymentDeadline: maybe("deadline"), PaidAt: maybe("paid"),
		}
		if rapid.Bool().Draw(t, "claimed") {
			claim := someID[id.Task](t, "claim")
			o.ClaimID = &claim
		}
		byHand, byJSON, err := order.CopyOf(o, rapid.Int64().Draw(t, "copied"))
		if err != nil || string(byHand) != string(byJSON) {
			t.Fatalf("%v\n%s\n%s", err, byHand, byJSON)
		}
		task := order.Task{
			ID: id.Task(o.ID), User: o.User, Sale: o.Sale, Item: o.Item, Quantity: o.Quantity,
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

func TestAPackedCopyIsTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		created := someTime(t, "created")
		deadline := someTime(t, "deadline")
		o := &order.Order{
			ID: someID[id.Order](t, "id"), Number: rapid.String().Draw(t, "number"), Sale: someID[id.Sale](t, "sale"), Item: someID[id.Item](t, "item"), User: someID[id.User](t, "user"),
			Kind: order.Seckill, Status: order.PendingPayment, Quantity: rapid.Int().Draw(t, "quantity"), UnitPriceMinor: rapid.Int64().Draw(t, "price"),
			Currency: "EUR", Version: 1, Epoch: rapid.Int64().Draw(t, "epoch"), ReservedAt: someTime(t, "reserved"),
			CreatedAt: created, UpdatedAt: created, PaymentDeadline: &deadline,
		}
		copied := someTime(t, "copied")
		packed := order.Pack(o, copied)
		got, at, err := order.Unpack(o.ID, packed)
		if d := cmp.Diff(o, got); err != nil || d != "" || at != copied.UnixMilli() {
			t.Fatalf("%v, copied at %d, want %d\n%s", err, at, copied.UnixMilli(), d)
		}
		cut := packed[:rapid.IntRange(0, len(packed)-1).Draw(t, "cut")]
		if got, _, err := order.Unpack(o.ID, cut); err == nil {
			t.Fatalf("%d of %d bytes were read as %+v", len(cut), len(packed), got)
		}
	})
}
