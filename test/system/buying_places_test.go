package system_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// positionedTask is an OrderTask with its position among the orders that wait for a worker.
type positionedTask struct {
	Status string
	Queue  *struct {
		Ahead    int
		Estimate *int
	}
}

// Orders wait for a worker: each buyer sees at once how many are ahead, and the number only
// falls.
func TestAWaitingOrderShowsHowManyAreAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	const buyers = 6
	made := s.seed(seed.Input{Users: buyers, Stock: buyers, PathTTL: 10 * time.Minute})
	document := `mutation($in: PlaceOrderInput!) { placeOrder(input: $in) { orderTask { id status queue { ahead estimate } } userErrors { code } } }`
	var tasks []string
	for i, u := range made.Users {
		var data struct {
			PlaceOrder struct {
				OrderTask *struct {
					positionedTask
					ID string
				}
			}
		}
		out := s.ask(u.AccessToken, document, map[string]any{"in": order(made.ItemID, u.Path)})
		out.into(t, &data)
		task := data.PlaceOrder.OrderTask
		if task == nil {
			t.Fatalf("placed: %s %+v", out.Data, out.Errors)
		}
		if task.Queue == nil || task.Queue.Ahead != i {
			t.Errorf("order %d is placed behind %+v", i, task.Queue)
		}
		tasks = append(tasks, task.ID)
	}
	api := s.url
	s.start("api") // a process that has accepted none of them
	for i, u := range made.Users {
		for _, url := range []string{api, s.url} {
			s.url = url
			var data struct{ OrderTask positionedTask }
			s.ask(u.AccessToken, `query($t: ID!) { orderTask(id: $t) { status queue { ahead estimate } } }`, map[string]any{"t": tasks[i]}).into(t, &data)
			if q := data.OrderTask.Queue; q == nil || q.Ahead != i {
				t.Errorf("order %d is read behind %+v", i, q)
			}
		}
	}
	s.url = api
	sockets := make([]*socket, buyers)
	ahead := make([]int, buyers)
	for i, u := range made.Users {
		k := s.dial(u.AccessToken)
		k.watchTaskQueue(tasks[i])
		if e := k.taskInQueue(); e == nil || e.Kind != "SNAPSHOT" || e.OrderTask.Queue == nil || e.OrderTask.Queue.Ahead != i {
			t.Errorf("before any worker, order %d: %+v", i, e)
		}
		sockets[i], ahead[i] = k, i
	}
	s.start("worker")
	s.url = api
	for i, k := range sockets {
		ended := false
		for e := k.taskInQueue(); e != nil; e = k.taskInQueue() {
			switch {
			case e.OrderTask.Status == "SUCCEEDED":
				ended = e.OrderTask.Queue == nil
			case e.OrderTask.Queue == nil || e.OrderTask.Queue.Ahead > ahead[i]:
				t.Errorf("order %d: %d ahead, then %+v", i, ahead[i], e.OrderTask)
			default:
				ahead[i] = e.OrderTask.Queue.Ahead
			}
		}
		if !ended {
			t.Errorf("order %d: the stream ended without the end of the task, or the ended task has a place", i)
		}
	}
}

// taskInQueueEvent is an OrderTaskEvent with the place of the task.
type taskInQueueEvent struct {
	Kind      string
	OrderTask positionedTask
}

// watchTaskQueue subscribes to a task with its place.
func (k *socket) watchTaskQueue(task string) {
	k.t.Helper()
	payload, _ := json.Marshal(map[string]any{ // strings
		"query":     `subscription($t: ID!) { orderTaskStatus(orderTaskId: $t) { kind orderTask { status queue { ahead estimate } } } }`,
		"variables": map[string]string{"t": task},
	})
	k.send(frame{ID: "line", Type: "subscribe", Payload: payload})
}

// taskInQueue reads the next event of watchTaskQueue; nil at the end of the stream.
func (k *socket) taskInQueue() *taskInQueueEvent {
	k.t.Helper()
	f := k.read()
	if f.Type == "complete" {
		return nil
	}
	var got struct {
		Data struct{ OrderTaskStatus taskInQueueEvent }
	}
	if err := json.Unmarshal(f.Payload, &got); err != nil || f.Type != "next" {
		k.t.Fatalf("frame %s %s: %v", f.Type, f.Payload, err)
	}
	return &got.Data.OrderTaskStatus
}

// viewed is what the viewer of a sale knows of the buyer's places.
type viewed struct {
	Action        string
	QueueTicket   *queueTicket
	WaitlistEntry *waitlistEntry
}

func (s *site) viewed(token, saleID string) viewed {
	s.t.Helper()
	var data struct{ Sale struct{ Viewer viewed } }
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { viewer { action queueTicket { id status } waitlistEntry { id status } } } }`,
		map[string]any{"id": saleID}).into(s.t, &data)
	return data.Sale.Viewer
}

func TestTheViewerKnowsWhoIsInLine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 4, Stock: 1}) // one unit × the ratio = two permits
	path := ""
	for i := range 2 {
		token := made.Users[i].AccessToken
		given, _, why := s.knock("issueSeckillPath", token, made)
		if given == "" {
			t.Fatalf("buyer %d: no path: %s", i, why)
		}
		path = given
	}
	holder, waits, other := made.Users[1].AccessToken, made.Users[2].AccessToken, made.Users[3].AccessToken
	_, ticket, why := s.knock("issueSeckillPath", waits, made)
	if ticket == nil {
		t.Fatalf("no place: %s", why)
	}
	testenv.Eventually(t, patience, func() bool { // the list of waiting rooms is read once a second
		v := s.viewed(waits, made.SaleID)
		return v.Action == "IN_WAITING_ROOM" && v.QueueTicket != nil && v.QueueTicket.ID == ticket.ID && v.QueueTicket.Status == "WAITING"
	}, "the buyer in the waiting room is shown there")
	if v := s.viewed(other, made.SaleID); v.Action != "BUY" || v.QueueTicket != nil {
		t.Errorf("a buyer who waits for nothing: %+v", v)
	}
	document := `mutation($i: ID!) { joinWaitlist(input: {itemId: $i}) { userErrors { code message } } }`
	if out := string(s.ask(other, document, map[string]any{"i": made.ItemID}).Data); !strings.Contains(out, `"CONFLICT"`) || !strings.Contains(out, "buy instead") {
		t.Errorf("joining the waitlist while there is stock: %s", out)
	}
	if p, err := s.place(holder, order(made.ItemID, path)); err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	s.drained(made.SaleID, 1)
	place := s.joined(other, made.ItemID)
	testenv.Eventually(t, patience, func() bool {
		v := s.viewed(other, made.SaleID)
		return v.Action == "ON_WAITLIST" && v.WaitlistEntry != nil && v.WaitlistEntry.ID == place.ID
	}, "the buyer on the waitlist is shown there")
}
