package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

func u(text string) uuid.UUID { return uuid.MustParse(text) }

func golden() order.Request {
	return order.Request{
		V:    1,
		Task: id.Task(u("01937b3c-8f00-7abc-9def-000000000007")), User: id.User(u("01937b3c-0001-7abc-9def-0123456789ab")),
		Sale: id.Sale(u("01937b3c-0002-7abc-9def-012345678917")), Item: id.Item(u("01937b3c-0003-7abc-9def-0123456789ab")),
		Quantity: 2, UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, IdempotencyKey: "abcdefghijklmnop",
		Epoch: 3, SubmittedAtMs: 1795204800123,
	}
}

// goldenOrders are three orders of two items in one message.
func goldenOrders() []order.Request {
	first, second, third := golden(), golden(), golden()
	second.Task, second.User, second.IdempotencyKey = id.Task(u("01937b3c-8f01-7abc-9def-000000000007")), id.User(u("01937b3c-0009-7abc-9def-0123456789ab")), ""
	third.Task, third.Item, third.Quantity = id.Task(u("01937b3c-8f02-7abc-9def-000000000007")), id.Item(u("01937b3c-0004-7abc-9def-0123456789ab")), 1
	return []order.Request{first, second, third}
}

const goldenPayload = "v2\n" +
	"@01937b3c-0002-7abc-9def-012345678917|01937b3c-0003-7abc-9def-0123456789ab|3|1999|EUR|900\n" +
	"01937b3c-0001-7abc-9def-0123456789ab|01937b3c-8f00-7abc-9def-000000000007|2|1795204800123|abcdefghijklmnop\n" +
	"01937b3c-0009-7abc-9def-0123456789ab|01937b3c-8f01-7abc-9def-000000000007|2|1795204800123|\n" +
	"@01937b3c-0002-7abc-9def-012345678917|01937b3c-0004-7abc-9def-0123456789ab|3|1999|EUR|900\n" +
	"01937b3c-0001-7abc-9def-0123456789ab|01937b3c-8f02-7abc-9def-000000000007|1|1795204800123|abcdefghijklmnop"

// goldenSingle is an order in the form of release 0.1.
const goldenSingle = `{"v":1,"task":"01937b3c-8f00-7abc-9def-000000000007","user":"01937b3c-0001-7abc-9def-0123456789ab",` +
	`"sale":"01937b3c-0002-7abc-9def-012345678917","item":"01937b3c-0003-7abc-9def-0123456789ab","quantity":2,` +
	`"unitPriceMinor":1999,"currency":"EUR","paymentWindowSeconds":900,"idempotencyKey":"abcdefghijklmnop"}`

// Old and new processes read each other's messages during a rolling update, so these
// bytes do not change within a version.
func TestTheBytesOfAnOrderMessageAreFixed(t *testing.T) {
	t.Parallel()
	msg, err := order.NewMessage(goldenOrders()...)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(msg.Payload); got != goldenPayload || stream.Count(msg) != 3 {
		t.Errorf("%d orders in\n%s\nwant 3 in\n%s", stream.Count(msg), got, goldenPayload)
	}
	got, err := order.Decode(msg)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(goldenOrders(), got); d != "" {
		t.Error(d)
	}
}

func TestMessagesOfTheFormerReleaseAreRead(t *testing.T) {
	t.Parallel()
	for name, msg := range map[string]*stream.Message{
		"sent by the gate": metadata(order.MetaAt, "1795204800123"),
		"sent again": stream.NewMessage(golden().Task.String(),
			[]byte(strings.TrimSuffix(goldenSingle, "}")+`,"epoch":3,"submittedAtMs":1795204800123,"colour":"red"}`)),
	} {
		got, err := order.Decode(msg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff([]order.Request{golden()}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAMessageSplitsIntoItsOrders(t *testing.T) {
	t.Parallel()
	spoilt := strings.Replace(goldenPayload, "|2|1795204800123|\n", "|two|1795204800123|\n", 1)
	msg := stream.NewMessage(golden().Task.String(), []byte(spoilt))
	orders := goldenOrders()
	got, err := order.Decode(msg)
	if d := cmp.Diff([]order.Request{orders[0], orders[2]}, got); d != "" || !errors.Is(err, order.ErrMalformed) {
		t.Errorf("the valid orders: %v %s", err, d)
	}
	parts := order.Split(msg)
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, part := range parts {
		got, err := order.Decode(part)
		if part.UUID != orders[i].Task.String() || stream.Count(part) != 1 || order.Split(part) != nil {
			t.Errorf("part %d: id %s, %d orders", i, part.UUID, stream.Count(part))
		}
		if i == 1 {
			if !errors.Is(err, order.ErrMalformed) || len(got) != 0 {
				t.Errorf("the spoilt one: %+v %v", got, err)
			}
		} else if d := cmp.Diff(orders[i:i+1], got); d != "" || err != nil {
			t.Errorf("part %d: %v %s", i, err, d)
		}
	}
}

func TestMalformedMessagesAreRefusedForGood(t *testing.T) {
	t.Parallel()
	with := func(change func(*order.Request)) order.Request {
		r := golden()
		change(&r)
		return r
	}
	for name, r := range map[string]order.Request{
		"another version":       with(func(r *order.Request) { r.V = 2 }),
		"no version":            with(func(r *order.Request) { r.V = 0 }),
		"no task":               with(func(r *order.Request) { r.Task = id.Task{} }),
		"no user":               with(func(r *order.Request) { r.User = id.User{} }),
		"no sale":               with(func(r *order.Request) { r.Sale = id.Sale{} }),
		"no item":               with(func(r *order.Request) { r.Item = id.Item{} }),
		"task of no shard":      with(func(r *order.Request) { r.Task[15] = 200 }),
		"task of another shard": with(func(r *order.Request) { r.Task[15] = 8 }),
		"quantity 0":            with(func(r *order.Request) { r.Quantity = 0 }),
		"quantity negative":     with(func(r *order.Request) { r.Quantity = -1 }),
		"quantity absurd":       with(func(r *order.Request) { r.Quantity = 1 << 40 }),
		"price negative":        with(func(r *order.Request) { r.UnitPriceMinor = -1 }),
		"no currency":           with(func(r *order.Request) { r.Currency = "" }),
		"no window":             with(func(r *order.Request) { r.PaymentWindowSeconds = 0 }),
		"window absurd":         with(func(r *order.Request) { r.PaymentWindowSeconds = 1 << 40 }),
		"long key":              with(func(r *order.Request) { r.IdempotencyKey = strings.Repeat("k", 65) }),
		"no epoch":              with(func(r *order.Request) { r.Epoch = 0 }),
		"no time":               with(func(r *order.Request) { r.SubmittedAtMs = 0 }),
		"time of no calendar":   with(func(r *order.Request) { r.SubmittedAtMs = 1 << 62 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			err = orderintake.NewHandler(nil, nil, nil).Handle(stream.NewMessage(r.Task.String(), payload))
			if !errors.Is(err, order.ErrMalformed) || !stream.IsPermanent(err) {
				t.Errorf("error %v", err)
			}
		})
	}
	for name, msg := range map[string]*stream.Message{
		"no version line":    stream.NewMessage(golden().Task.String(), []byte("order")),
		"a later version":    batched(func(text string) string { return strings.Replace(text, "v2", "v3", 1) }),
		"no orders":          batched(func(text string) string { return text[:strings.LastIndex(text, "@")-1][:94] }),
		"no item":            batched(func(text string) string { return strings.Replace(text, "@", "", 1) }),
		"too few fields":     batched(func(text string) string { return strings.Replace(text, "|EUR", "", 1) }),
		"a key too many":     batched(func(text string) string { return text + "|key" }),
		"no end":             batched(func(text string) string { return text + "\n" }),
		"another first task": stream.NewMessage(uuid.NewString(), []byte(goldenPayload)),
		"another task":       stream.NewMessage(uuid.NewString(), []byte(strings.TrimSuffix(goldenSingle, "}")+`,"epoch":1,"submittedAtMs":1}`)),
		"a text as epoch":    metadata(order.MetaEpoch, "first"),
		"a text as time":     metadata(order.MetaAt, "noon"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := orderintake.NewHandler(nil, nil, nil).Handle(msg); !errors.Is(err, order.ErrMalformed) || !stream.IsPermanent(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func batched(change func(string) string) *stream.Message {
	return stream.NewMessage(golden().Task.String(), []byte(change(goldenPayload)))
}

func metadata(key, value string) *stream.Message {
	msg := stream.NewMessage(golden().Task.String(), []byte(goldenSingle))
	msg.Metadata.Set(order.MetaEpoch, "3")
	msg.Metadata.Set(order.MetaAt, "1795204800123")
	msg.Metadata.Set(key, value)
	return msg
}

func TestNoMessageIsMadeThatDecodeWouldRefuse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*order.Request){
		"quantity 0":            func(r *order.Request) { r.Quantity = 0 },
		"a line in a key":       func(r *order.Request) { r.IdempotencyKey = "key\n@another|item" },
		"a field in a key":      func(r *order.Request) { r.IdempotencyKey = "key|1" },
		"a field in a currency": func(r *order.Request) { r.Currency = "E|R" },
	} {
		r := golden()
		change(&r)
		if _, err := r.Message(); !errors.Is(err, order.ErrMalformed) {
			t.Errorf("%s: message, error %v", name, err)
		}
		if _, err := r.ItemTerms(); !errors.Is(err, order.ErrMalformed) {
			t.Errorf("%s: attempt, error %v", name, err)
		}
	}
}

func TestTheHandlerAcknowledgesWhatIsCommitted(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 1, limit: 1})
	w := e.writer(nil)
	h := orderintake.NewHandler(w, nil, nil)
	won, lost := e.request(), e.request()
	for _, r := range []order.Request{won, won, lost, lost} {
		msg, err := r.Message()
		e.must(err)
		e.must(h.Handle(msg))
	}
	if e.orders() != 1 || e.failures() != 1 {
		t.Errorf("%d orders, %d failures", e.orders(), e.failures())
	}
	e.must(w.Close(context.Background()))
	msg, err := e.request().Message()
	e.must(err)
	if err := h.Handle(msg); !stream.IsRetryable(err) {
		t.Errorf("after close: %v", err)
	}
}

func TestTheRecordOfATaskIsFixed(t *testing.T) {
	t.Parallel()
	g := golden()
	at := time.UnixMilli(1795204800123).UTC()
	task := order.Task{
		ID: g.Task, User: g.User, Sale: g.Sale, Item: g.Item, Quantity: 2, Status: order.Failed, Revision: 3,
		Failure: fault.SoldOut, CreatedAt: at, UpdatedAt: at.Add(time.Second),
	}
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"01937b3c-8f00-7abc-9def-000000000007","user":"01937b3c-0001-7abc-9def-0123456789ab",` +
		`"sale":"01937b3c-0002-7abc-9def-012345678917","item":"01937b3c-0003-7abc-9def-0123456789ab","quantity":2,` +
		`"status":"FAILED","revision":3,"failure":"SOLD_OUT","createdAtMs":1795204800123,"updatedAtMs":1795204801123}`
	if string(text) != want {
		t.Errorf("record\n%s\nwant\n%s", text, want)
	}
	var back order.Task
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(task, back); d != "" {
		t.Error(d)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(goldenPayload), "1", "1795204800123")
	f.Add([]byte(goldenSingle), "1", "1795204800123")
	f.Add([]byte(`{"v":1}`), "", "x")
	f.Fuzz(func(t *testing.T, payload []byte, epoch, at string) {
		msg := stream.NewMessage("", payload)
		msg.Metadata.Set(order.MetaEpoch, epoch)
		msg.Metadata.Set(order.MetaAt, at)
		requests, err := order.Decode(msg)
		if err != nil {
			if !errors.Is(err, order.ErrMalformed) {
				t.Errorf("error %v", err)
			}
			return
		}
		if _, err := order.NewMessage(requests...); err != nil {
			t.Errorf("decoded %+v, which does not encode: %v", requests, err)
		}
	})
}
