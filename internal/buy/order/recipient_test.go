package order_test

import (
	"context"
	"encoding/json"
	"testing"

	"seckill/ent"
	"seckill/ent/webhookevent"
	"seckill/internal/buy/order"
	"seckill/internal/identity/person"
	"seckill/internal/identity/recipient"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// needAddresses makes the sale one whose orders have an address.
func (e *env) needAddresses() {
	e.t.Helper()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.UpdateOneID(e.sale).SetRequiresAddress(true).Exec(ctx)
	}))
}

func (e *env) lives(user id.User, street string) recipient.Address {
	e.t.Helper()
	a, err := recipient.NewBook(e.db, e.clock, testenv.Wait).Save(e.t.Context(), user, recipient.Address{Recipient: recipient.Recipient{
		Name: "Lin", Phone: "13800001111", Country: "CN", City: "Hangzhou", Street: street,
	}}, true)
	e.must(err)
	return a
}

func TestAnOrderKeepsTheAddressThatItsBuyerHad(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		e.needAddresses()
		w := e.writer(nil)
		requests := e.requests(3)
		var moved recipient.Address
		for i, street := range []string{"1 First Road", "2 Second Road"} {
			moved = e.lives(requests[i].User, street)
		}
		results := w.Write(t.Context(), requests...)
		for i, r := range results {
			if r.Err != nil {
				t.Fatalf("request %d: %v", i, r.Err)
			}
		}
		if got := results[2].Task; got.Status != order.Failed || got.Failure != fault.AddressRequired {
			t.Errorf("without an address: %+v, want it failed with ADDRESS_REQUIRED", got)
		}
		moved.Street = "9 Ninth Road"
		_, err := recipient.NewBook(e.db, e.clock, testenv.Wait).Save(t.Context(), requests[1].User, moved, true)
		e.must(err)
		of, err := recipient.Of(t.Context(), e.db.Ent.OrderRecipient, id.Order(requests[0].Task), id.Order(requests[1].Task), id.Order(requests[2].Task))
		e.must(err)
		if len(of) != 2 || of[id.Order(requests[0].Task)].Street != "1 First Road" || of[id.Order(requests[1].Task)].Street != "2 Second Road" {
			t.Errorf("%d orders have an address, of %d", len(of), 2)
		}
		if got := e.figures(); got.held != 2 || e.failures() != 1 {
			t.Errorf("stock %+v and %d failures, want 2 held and one failure", got, e.failures())
		}
		e.conserved()
	})
}

func TestASaleWithoutAddressesKeepsNone(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		r := e.requestOf(id.New[id.User](), 1)
		e.lives(r.User, "1 First Road")
		e.write(e.writer(nil), r)
		of, err := recipient.Of(t.Context(), e.db.Ent.OrderRecipient, id.Order(r.Task))
		e.must(err)
		if len(of) != 0 || e.orders() != 1 {
			t.Errorf("%d orders, %d with an address", e.orders(), len(of))
		}
	})
}

// recipientEvent is an event as other systems receive it, with its recipient.
type recipientEvent struct {
	Type webhook.Kind
	Data struct {
		OrderID, Status string
		Revision        int64
		Recipient       *recipient.Recipient
	}
}

func TestACorrectionOfAnAddressIsOneEventWithTheNewRecipient(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		e.subscribe()
		e.needAddresses()
		r := e.requestOf(id.New[id.User](), 1)
		home := e.lives(r.User, "1 First Road").Recipient
		o := e.write(e.writerWithEvents(), r).Order
		corrections := order.Corrections{DB: e.db, Facts: e.webhooks(), Clock: e.clock}
		correct := func(by id.User, street string) error {
			to := home
			to.Street = street
			_, err := corrections.Set(t.Context(), order.Correction{Order: o.ID, By: order.Actor{Kind: order.Buyer, User: by}, Recipient: to})
			return err
		}
		if err := correct(id.New[id.User](), "9 Thief Lane"); fault.ReasonOf(err) != fault.Unknown {
			t.Errorf("by another buyer: %v", err)
		}
		e.must(correct(r.User, "2 Second Road"))
		e.must(correct(r.User, "2 Second Road")) // changes nothing
		var got []recipientEvent
		rows, err := e.db.Ent.WebhookEvent.Query().Order(ent.Asc(webhookevent.FieldID)).All(t.Context())
		e.must(err)
		for _, row := range rows {
			var one recipientEvent
			e.must(json.Unmarshal(row.Payload, &one))
			if one.Type == webhook.OrderRecipient {
				got = append(got, one)
			}
		}
		if len(got) != 1 {
			t.Fatalf("%d events, want one", len(got))
		}
		want := home
		want.Street = "2 Second Road"
		if d := got[0].Data; got[0].Type != "order.recipient_changed" || d.OrderID != o.ID.Public() || d.Status != "PENDING_PAYMENT" ||
			d.Revision != o.Version+1 || d.Recipient == nil || *d.Recipient != want {
			t.Errorf("the event is %+v, want the order with %+v", got[0], want)
		}
	})
}

// A buyer who gets a path token with one address cannot have the parcel sent to another that a limit
// has counted already.
func TestALimitCountsTheAddressThatTheOrderGets(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		e.needAddresses()
		hasher := person.NewHasher([][]byte{[]byte("a secret of at least 32 bytes, for tests")})
		w := e.writer(nil, func(cfg *order.WriterConfig) { cfg.Persons = &hasher })
		requests := e.requests(2)
		for i := range requests {
			e.lives(requests[i].User, "1 First Road")
			requests[i].Persons = person.Keys{Contact: hasher.Contact(e.sale, requests[i].User.String()+"@example.com", true)}
		}
		requests[0].Persons.Address = hasher.Address(e.sale, person.Place{Country: "CN", City: "Hangzhou", Street: "1 First Rd."})
		requests[1].Persons.Address = hasher.Address(e.sale, person.Place{Country: "CN", City: "Hangzhou", Street: "2 Second Road"})
		results := w.Write(t.Context(), requests...)
		if got := results[1].Task; got.Status != order.Failed || got.Failure != fault.AddressRequired {
			t.Errorf("another address than was counted: %+v", got)
		}
		row, err := e.db.Ent.Order.Get(t.Context(), id.Order(requests[0].Task))
		e.must(err)
		if got := order.FromRow(row).Persons; got != requests[0].Persons {
			t.Errorf("the order has the person keys %+v, want %+v", got, requests[0].Persons)
		}
		corrections := order.Corrections{DB: e.db, AfterCommit: e.afterCommit(order.AfterCommitConfig{Cache: e.cache}), Clock: e.clock}
		to := recipient.Recipient{Name: "Wei", Phone: "13800002222", Country: "CN", City: "Hangzhou", Street: "1 FIRST ROAD"}
		in := order.Correction{Order: row.ID, By: order.Actor{Kind: order.Buyer, User: row.UserID}, Recipient: to}
		if _, err := corrections.Set(t.Context(), in); err != nil {
			t.Errorf("another name at the same place: %v", err)
		}
		in.Recipient.Street = "2 Second Road"
		if _, err := corrections.Set(t.Context(), in); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("another place: %v, want CONFLICT", err)
		}
	})
}
