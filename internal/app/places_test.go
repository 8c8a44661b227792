package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill/internal/seed"
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

// Orders wait for a worker: their buyers see how many are ahead, and the number only
// falls.
func TestAWaitingOrderShowsHowManyAreAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	const buyers = 5
	made := s.seed(seed.Input{Users: buyers, Stock: buyers, PathTTL: 10 * time.Minute})
	var tasks []string
	for _, u := range made.Users {
		p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.why() != "" {
			t.Fatalf("placed: %+v %v", p, err)
		}
		tasks = append(tasks, p.OrderTask.ID)
	}
	ask := func(which int) (task positionedTask) {
		t.Helper()
		var data struct{ OrderTask positionedTask }
		s.ask(made.Users[which].AccessToken, `query($t: ID!) { orderTask(id: $t) { status queue { ahead estimate } } }`, map[string]any{"t": tasks[which]}).into(t, &data)
		return data.OrderTask
	}
	last, place := buyers-1, 0
	testenv.Eventually(t, patience, func() bool { // a reading is shared for a second
		first, end := ask(0), ask(last)
		if end.Queue != nil {
			place = end.Queue.Ahead // an estimate by the times at which orders were appended
		}
		return first.Queue != nil && first.Queue.Ahead == 0 && place > 0 && place <= last
	}, "the first and the last order know their places")

	k := s.dial(made.Users[last].AccessToken)
	payload, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings
		"query":     `subscription($t: ID!) { orderTaskStatus(orderTaskId: $t) { kind orderTask { status queue { ahead estimate } } } }`,
		"variables": map[string]string{"t": tasks[last]},
	})
	k.send(frame{ID: "line", Type: "subscribe", Payload: payload})
	api := s.url
	defer func() { s.url = api }()
	ahead, ended := -1, false
	for n := 0; ; n++ {
		f := k.read()
		if f.Type == "complete" {
			break
		}
		var got struct {
			Data struct {
				OrderTaskStatus struct {
					Kind      string
					OrderTask positionedTask
				}
			}
		}
		if err := json.Unmarshal(f.Payload, &got); err != nil || f.Type != "next" {
			t.Fatalf("frame %s %s: %v", f.Type, f.Payload, err)
		}
		e := got.Data.OrderTaskStatus
		switch {
		case n == 0 && (e.Kind != "SNAPSHOT" || e.OrderTask.Queue == nil || e.OrderTask.Queue.Ahead != place):
			t.Fatalf("before any worker: %+v", e)
		case e.OrderTask.Status == "SUCCEEDED":
			ended = e.OrderTask.Queue == nil
		case e.OrderTask.Queue == nil || (ahead >= 0 && e.OrderTask.Queue.Ahead > ahead):
			t.Errorf("%d ahead, then %+v", ahead, e.OrderTask)
		default:
			ahead = e.OrderTask.Queue.Ahead
		}
		if n == 0 {
			s.start("worker")
			s.url = api
		}
	}
	if !ended {
		t.Error("the stream ended without the end of the task, or the ended task has a place")
	}
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
