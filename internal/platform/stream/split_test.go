package stream

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"seckill/internal/testenv"
)

// several returns a message of some orders, separated by commas.
func several(number int, orders ...string) *Message {
	msg := NewMessage(name(number), []byte(strings.Join(orders, ",")))
	msg.Metadata.Set(FieldCount, strconv.Itoa(len(orders)))
	return msg
}

func splitAtCommas(msg *Message) (parts []*Message) {
	for i, order := range strings.Split(string(msg.Payload), ",") {
		parts = append(parts, NewMessage(msg.UUID+"/"+strconv.Itoa(i), []byte(order)))
	}
	return parts
}

func TestOnePoisonOrderOfAMessageIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		handled, sick := map[string]int{}, true
		r.route(func(msg *Message) error {
			mu.Lock()
			defer mu.Unlock()
			orders := strings.Split(string(msg.Payload), ",")
			for _, order := range orders {
				if order == "poison" && sick {
					return Permanent(errors.New("poison"))
				}
			}
			for _, order := range orders {
				handled[order]++
			}
			return nil
		}, func(c *RouterConfig) { c.Handlers[0].Split = splitAtCommas })
		if err := (Appender{r.redis}).Append(t.Context(), r.topic, several(0, "a", "b"), several(1, "c", "poison", "d")); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, patience, func() bool { return len(r.letters()) == 1 }, "the poison order is set aside")
		r.settled()
		letter := r.letters()[0]
		if letter.MessageID != name(1)+"/1" || r.tally.of(Divided) != 1 || r.tally.of(DeadLettered) != 1 {
			t.Errorf("letter %+v, %d split, %d set aside", letter, r.tally.of(Divided), r.tally.of(DeadLettered))
		}
		mu.Lock()
		sick = false
		mu.Unlock()
		if ok, err := r.dead.Replay(t.Context(), letter); !ok || err != nil {
			t.Fatal(ok, err)
		}
		testenv.Eventually(t, patience, func() bool { mu.Lock(); defer mu.Unlock(); return handled["poison"] == 1 }, "the replayed order is handled")
		r.settled()
		mu.Lock()
		defer mu.Unlock()
		for _, order := range []string{"a", "b", "c", "d", "poison"} {
			if handled[order] != 1 {
				t.Errorf("order %s was handled %d times", order, handled[order])
			}
		}
	})
}

// A worker that dies after the parts were appended and before the acknowledgement: the
// message is delivered again, and its parts are not appended a second time.
func TestAMessageIsSplitOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		parts := splitAtCommas(several(0, "a", "b", "c"))
		for range 3 {
			if err := appendSplit(t.Context(), r.redis, r.topic, "1-0", parts); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.redis.XLen(t.Context(), r.topic).Val(); n != 3 {
			t.Errorf("%d entries for 3 parts", n)
		}
	})
}

// A message of the former release has no count and is one order.
func TestStatisticsCountOrders(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		want := func(unread, pending int64) {
			t.Helper()
			if s := r.stats(); s.Unread != unread || s.Pending != pending {
				t.Errorf("%d unread, %d pending; want %d and %d", s.Unread, s.Pending, unread, pending)
			}
		}
		put := func(messages ...*Message) {
			t.Helper()
			if err := (Appender{r.redis}).Append(t.Context(), r.topic, messages...); err != nil {
				t.Fatal(err)
			}
		}
		r.publish(0, 2)
		put(several(2, "a", "b", "c"), several(3, "d"))
		want(6, 0)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.Batch, c.MaxInFlight = 1, 3 }))
		var read []*Message
		for range 3 {
			read = append(read, r.next(messages)) // 1 + 1 + 3 orders: the window is full
		}
		want(1, 5)
		put(several(4, "e", "f"), several(5, "g", "h", "i", "j"))
		want(7, 5)
		read[0].Ack()
		read[1].Ack()
		testenv.Eventually(t, patience, func() bool { return r.stats().Pending == 3 }, "two of them are acknowledged")
		read[2].Ack()
		for range 3 {
			r.next(messages).Ack()
		}
		r.settled()
	})
}
