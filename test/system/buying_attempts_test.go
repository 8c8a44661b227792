package system_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// refusedAttempt is a RefusedAttempt.
type refusedAttempt struct {
	Stage, Code, Message string
	Times                int
	UnitsLeft, Ahead     *int
	Item                 *struct{ ID string }
}

// attempts reads what was refused to a buyer in a sale.
func (s *site) attempts(token, saleID string) (list []refusedAttempt, total int) {
	s.t.Helper()
	var data struct {
		MyAttempts struct {
			Total    int
			Attempts []refusedAttempt
		}
	}
	s.ask(token, `query($id: ID!) { myAttempts(saleId: $id) { total attempts { stage code message times unitsLeft ahead item { id } firstAt lastAt } } }`,
		map[string]any{"id": saleID}).into(s.t, &data)
	return data.MyAttempts.Attempts, data.MyAttempts.Total
}

func TestARefusedBuyerSeesWhereAndWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	s.start("worker", "scheduler")
	s.start("api")
	made := s.seed(seed.Input{Users: 3, Stock: 1})
	operator := s.staff("ann@example.com", "OPERATOR")
	winner, loser, other := made.Users[0], made.Users[1], made.Users[2]

	challenge, _ := s.captcha(loser.AccessToken, made.SaleID)
	if _, why := s.path(loser.AccessToken, made.ItemID, challenge, "wrong"); why != "CAPTCHA_INVALID" {
		t.Fatalf("a wrong answer: %q", why)
	}
	challenge, right := s.captcha(winner.AccessToken, made.SaleID)
	path, why := s.path(winner.AccessToken, made.ItemID, challenge, right)
	if why != "" {
		t.Fatalf("no path: %s", why)
	}
	if p, err := s.place(winner.AccessToken, order(made.ItemID, path)); err != nil || p.why() != "" {
		t.Fatalf("%+v %v", p, err)
	}
	s.drained(made.SaleID, 1)
	for range 3 {
		if p, err := s.place(loser.AccessToken, order(made.ItemID, "a guess")); err != nil || p.why() != "SOLD_OUT" {
			t.Fatalf("%+v %v", p, err)
		}
	}
	var list []refusedAttempt
	testenv.Eventually(t, patience, func() bool {
		var total int
		list, total = s.attempts(loser.AccessToken, made.SaleID)
		return total == 4
	}, "the buyer sees all refusals")
	got := map[string]refusedAttempt{}
	for _, a := range list {
		if a.Item == nil || a.Item.ID != made.ItemID || a.Message == "" {
			t.Fatalf("%+v", a)
		}
		got[a.Stage+" "+a.Code] = a
	}
	late, wrong := got["ORDER SOLD_OUT"], got["PATH CAPTCHA_INVALID"]
	if len(list) != 2 || late.Times != 3 || wrong.Times != 1 || list[0].Stage != "ORDER" {
		t.Errorf("%+v", list)
	}
	if late.UnitsLeft == nil || *late.UnitsLeft != 0 {
		t.Errorf("sold out with %v units left", late.UnitsLeft)
	}
	// A process that has just started may not have read the gate yet.
	if wrong.UnitsLeft != nil && *wrong.UnitsLeft != 1 {
		t.Errorf("%d units left before the first order", *wrong.UnitsLeft)
	}

	// The operator counts the same, and no other user sees them.
	refusals := map[string]int{}
	testenv.Eventually(t, patience, func() bool {
		clear(refusals)
		for name, g := range s.gate(operator, made.SaleID) {
			for _, r := range g.Rejections {
				refusals[name+" "+r.Code] += r.Count
			}
		}
		return reflect.DeepEqual(refusals, map[string]int{"ORDER SOLD_OUT": 3, "PATH CAPTCHA_INVALID": 1})
	}, "the figures have the same refusals")
	for _, token := range []string{winner.AccessToken, other.AccessToken, operator} {
		if list, total := s.attempts(token, made.SaleID); total != 0 || len(list) != 0 {
			t.Errorf("another user sees %+v", list)
		}
	}
}

// A buyer who was admitted from the waiting room while away finds it among the refusals,
// once, whichever of several processes noticed it; the ticket says it too.
func TestAnAdmissionThatExpiredUnusedIsAmongTheRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("worker", "scheduler")
	s.start("api", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 5})
	token := made.Users[0].AccessToken
	_, ticket, why := s.knock("enterQueue", token, made)
	if ticket == nil {
		t.Fatalf("no ticket: %s", why)
	}
	read := func() (state struct {
		Status, EndReason string
		Path              *struct{ Token string }
	}) {
		var data struct{ Node any }
		data.Node = &state
		s.ask(token, `query($t: ID!) { node(id: $t) { ... on QueueTicket { status endReason path { token } } } }`, map[string]any{"t": ticket.ID}).into(t, &data)
		return state
	}
	testenv.Eventually(t, patience, func() bool { return read().Path != nil }, "the buyer is admitted")
	conn, err := redisconn.Open(t.Context(), s.cfg.RedisURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var viewer struct{ Viewer struct{ ID string } }
	s.ask(token, `{ viewer { id } }`, nil).into(t, &viewer)
	user, item := parsed[id.User](t, id.KindUser, viewer.Viewer.ID), parsed[id.Item](t, id.KindItem, made.ItemID)
	keys, shard := reservation.Keys{Prefix: s.cfg.RedisPrefix}, id.ShardOf(parsed[id.Sale](t, id.KindSale, made.SaleID))
	till := time.Now().Add(-time.Second).UnixMilli()
	over := redis.Z{Score: float64(till), Member: user.String()}
	pipe := conn.Cmd.TxPipeline()
	pipe.HSet(t.Context(), keys.Ticket(shard, parsed[id.Ticket](t, id.KindTicket, ticket.ID)), "expires", till)
	pipe.ZAddXX(t.Context(), keys.Permits(shard, item), over)
	pipe.ZAddXX(t.Context(), keys.Admissions(shard, item), over)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list []refusedAttempt
	testenv.Eventually(t, patience, func() bool {
		list, _ = s.attempts(token, made.SaleID)
		return len(list) > 0
	}, "the buyer sees that the admission passed")
	if got := list[0]; len(list) != 1 || got.Stage != "QUEUE" || got.Code != "PATH_INVALID" || got.Times != 1 || !strings.Contains(got.Message, "not used in time") ||
		got.Item == nil || got.Item.ID != made.ItemID {
		t.Errorf("%+v", list)
	}
	if got := read(); got.Status != "ADMITTED" || got.EndReason != "PATH_INVALID" || got.Path != nil {
		t.Errorf("the ticket reads %+v", got)
	}
}

// A challenge whose answer would bring nothing is refused with the reason.
func TestNoCaptchaIsMadeForASoldOutSale(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made, _ := s.soldOut(seed.Input{Users: 2})
	buyer := made.Users[1].AccessToken
	testenv.Eventually(t, testenv.Wait, func() bool { return s.button(buyer, made.SaleID).Phase == "SOLD_OUT" }, "the sale is sold out")
	p := s.mutate(buyer, "createCaptcha", "challenge { id }", map[string]any{"purpose": "SECKILL", "saleId": made.SaleID})
	if p.why() != "SOLD_OUT" {
		t.Errorf("createCaptcha: %q, want SOLD_OUT", p.why())
	}
}
