package system_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// solve returns the solution of a proof of work.
func solve(t testing.TB, parameters string) string {
	t.Helper()
	solution, err := captcha.Solve(parameters)
	if err != nil {
		t.Fatal(err)
	}
	return solution
}

// captcha issues a proof-of-work captcha for a sale and solves it.
func (s *site) captcha(token, saleID string) (challenge, right string) {
	s.t.Helper()
	out := s.ask(token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { challenge { id parameters } userErrors { code } } }`,
		map[string]any{"s": saleID})
	var data struct {
		CreateCaptcha struct {
			Challenge *struct{ ID, Parameters string }
			UserErrors
		}
	}
	out.into(s.t, &data)
	switch data.CreateCaptcha.why() {
	case "SOLD_OUT", "SALE_PAUSED", "SALE_CLOSED": // the next step says so, too
		return "cap_none", "0"
	}
	if data.CreateCaptcha.Challenge == nil {
		s.t.Fatalf("no challenge: %s %+v", out.Data, out.Errors)
	}
	return data.CreateCaptcha.Challenge.ID, solve(s.t, data.CreateCaptcha.Challenge.Parameters)
}

// path exchanges a captcha answer for a path token. On a refusal it returns "" and the
// error code.
func (s *site) path(token, itemID, challenge, right string) (path, why string) {
	s.t.Helper()
	out := s.ask(token, `mutation($i: ID!, $c: ID!, $a: String!) { issueSeckillPath(input: {itemId: $i, captcha: {challengeId: $c, answer: $a}}) { path { token expiresAt } userErrors { __typename code } } }`,
		map[string]any{"i": itemID, "c": challenge, "a": right})
	var data struct {
		IssueSeckillPath struct {
			Path *struct{ Token string }
			UserErrors
		}
	}
	out.into(s.t, &data)
	if p := data.IssueSeckillPath.Path; p != nil {
		return p.Token, ""
	}
	return "", data.IssueSeckillPath.why()
}

func TestEveryBadAttemptHasItsOwnCodeAndTakesNoStock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 3, Stock: 5, PurchaseLimit: 2, PathTTL: 10 * time.Minute})
	later := s.seed(seed.Input{Users: 1, Stock: 5, OpensIn: time.Hour, PathTTL: 10 * time.Minute})
	u := made.Users[0]
	fresh := func(change map[string]any) map[string]any {
		in := order(made.ItemID, u.Path)
		maps.Copy(in, change)
		return in
	}
	cases := map[string]struct {
		in   map[string]any
		want string
	}{
		"unknown item":          {fresh(map[string]any{"itemId": id.New[id.Item]().Public()}), "NOT_FOUND"},
		"malformed item":        {fresh(map[string]any{"itemId": "itm_{s07}"}), "NOT_FOUND"},
		"id of another kind":    {fresh(map[string]any{"itemId": made.SaleID}), "NOT_FOUND"},
		"wrong path":            {fresh(map[string]any{"pathToken": "AAAAAAAAAAAAAAAAAAAAAA"}), "PATH_INVALID"},
		"foreign path":          {fresh(map[string]any{"pathToken": made.Users[1].Path}), "PATH_INVALID"},
		"overlong path":         {fresh(map[string]any{"pathToken": strings.Repeat("x", 257)}), "INVALID_INPUT"},
		"quantity 0":            {fresh(map[string]any{"quantity": 0}), "INVALID_INPUT"},
		"negative quantity":     {fresh(map[string]any{"quantity": -1}), "INVALID_INPUT"},
		"quantity 11":           {fresh(map[string]any{"quantity": 11}), "INVALID_INPUT"},
		"over the limit":        {fresh(map[string]any{"quantity": 3}), "PURCHASE_LIMIT_REACHED"},
		"short idempotency key": {fresh(map[string]any{"idempotencyKey": "short"}), "INVALID_INPUT"},
		"odd idempotency key":   {fresh(map[string]any{"idempotencyKey": "with spaces and more"}), "INVALID_INPUT"},
		"not started":           {map[string]any{"itemId": later.ItemID, "pathToken": later.Users[0].Path, "quantity": 1, "idempotencyKey": uuid.NewString()}, "SALE_NOT_STARTED"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := s.place(u.AccessToken, c.in)
			if err != nil || p.why() != c.want || p.OrderTask != nil {
				t.Errorf("%s with task %v, %v; want %s", p.why(), p.OrderTask, err, c.want)
			}
		})
	}
	if report := s.audit(made.SaleID); report.Redis.Stock != 5 || report.Postgres.Orders != 0 {
		t.Errorf("stock was taken: %+v", report)
	}
}

func TestAKeyAnswersOnceAndASecondAttemptReturnsWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 5, PurchaseLimit: 2, PathTTL: 10 * time.Minute})
	u := made.Users[0]
	in := order(made.ItemID, u.Path)
	first, err := s.place(u.AccessToken, in)
	if err != nil || first.why() != "" || first.Replayed {
		t.Fatalf("first press: %+v %v", first, err)
	}
	again, err := s.place(u.AccessToken, in)
	if err != nil || !again.Replayed || again.OrderTask.ID != first.OrderTask.ID {
		t.Errorf("same key: %+v %v", again, err)
	}
	in["quantity"] = 2
	other, err := s.place(u.AccessToken, in)
	if err != nil || other.why() != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("same key, other input: %+v %v", other, err)
	}
	used, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
	if err != nil || used.why() != "PATH_INVALID" || used.OrderTask.ID != first.OrderTask.ID {
		t.Errorf("used path: %+v %v", used, err)
	}
	s.drained(made.SaleID, 1)
	challenge, right := s.captcha(u.AccessToken, made.SaleID)
	if _, why := s.path(u.AccessToken, made.ItemID, challenge, right); why != "ALREADY_ORDERED" {
		t.Errorf("a path for a holder: %s, want ALREADY_ORDERED", why)
	}
}

func TestTheKeyThatTookTheLastUnitIsAnsweredAfterItIsSoldOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 1, PathTTL: 10 * time.Minute})
	buyer, late := made.Users[0], made.Users[1]
	in := order(made.ItemID, buyer.Path)
	first, err := s.place(buyer.AccessToken, in)
	if err != nil || first.why() != "" {
		t.Fatalf("the last unit: %s %v", first.why(), err)
	}
	// The process refreshes its StockCache several times in this second.
	for began := time.Now(); time.Since(began) < time.Second; {
		if p, err := s.place(late.AccessToken, order(made.ItemID, late.Path)); err != nil || p.why() != "SOLD_OUT" {
			t.Fatalf("a late buyer: %s %v", p.why(), err)
		}
		again, err := s.place(buyer.AccessToken, in)
		if err != nil || again.why() != "" || !again.Replayed || again.OrderTask.ID != first.OrderTask.ID {
			t.Fatalf("asked again with the same key: %q %+v %v", again.why(), again, err)
		}
	}
}

func TestCaptchaAndPathGuardTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 3, Stock: 5})
	later := s.seed(seed.Input{Users: 1, Stock: 5, OpensIn: time.Hour})
	alice, bob := made.Users[0].AccessToken, made.Users[1].AccessToken

	challenge, right := s.captcha(alice, made.SaleID)
	if _, why := s.path(bob, made.ItemID, challenge, right); why != "CAPTCHA_INVALID" {
		t.Errorf("another user's captcha: %s", why)
	}
	if _, why := s.path(alice, made.ItemID, challenge, "wrong"); why != "CAPTCHA_INVALID" {
		t.Errorf("a wrong answer: %s", why)
	}
	path, why := s.path(alice, made.ItemID, challenge, right)
	if why != "" {
		t.Fatalf("the right answer: %s", why)
	}
	if _, why := s.path(alice, made.ItemID, challenge, right); why != "CAPTCHA_INVALID" {
		t.Errorf("an answer used twice: %s", why)
	}
	if p, err := s.place(bob, order(made.ItemID, path)); err != nil || p.why() != "PATH_INVALID" {
		t.Errorf("another user's path: %+v %v", p, err)
	}
	s.captcha(alice, made.SaleID)
	s.awaitNoPermit(made)
	if p, err := s.place(alice, order(made.ItemID, path)); err != nil || p.why() != "PATH_INVALID" {
		t.Errorf("a path voided by a new captcha: %+v %v", p, err)
	}
	early, answer := s.captcha(later.Users[0].AccessToken, later.SaleID)
	if _, why := s.path(later.Users[0].AccessToken, later.ItemID, early, answer); why != "SALE_NOT_STARTED" {
		t.Errorf("before the opening: %s", why)
	}
	if report := s.audit(made.SaleID); report.Redis.Stock != 5 {
		t.Errorf("stock was taken: %+v", report)
	}
}

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 5, PathTTL: 10 * time.Minute})
	in := map[string]any{"in": order(made.ItemID, made.Users[0].Path)}
	if got := s.ask("", placeOrder, in).code(); got != "UNAUTHENTICATED" {
		t.Errorf("anonymous: %s", got)
	}
	forged := made.Users[0].AccessToken[:len(made.Users[0].AccessToken)-4] + "AAAA"
	if got := s.ask(forged, placeOrder, in).code(); got != "UNAUTHENTICATED" {
		t.Errorf("a forged token: %s", got)
	}
	p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	s.drained(made.SaleID, 1)
	orderID := "ord_" + strings.TrimPrefix(p.OrderTask.ID, "tsk_")
	for _, foreign := range []string{p.OrderTask.ID, orderID} {
		var data struct{ Node, OrderTask, Order *struct{ ID string } }
		s.ask(made.Users[1].AccessToken, `query($i: ID!) { node(id: $i) { id } orderTask(id: $i) { id } order(by: { id: $i }) { id } }`,
			map[string]any{"i": foreign}).into(t, &data)
		if data.Node != nil || data.OrderTask != nil || data.Order != nil {
			t.Errorf("%s is shown to another user: %+v", foreign, data)
		}
	}
	var own struct{ OrderTask, Order *struct{ ID, Status string } }
	s.ask(made.Users[0].AccessToken, `query($t: ID!, $o: ID!) { orderTask(id: $t) { id status } order(by: { id: $o }) { id status } }`,
		map[string]any{"t": p.OrderTask.ID, "o": orderID}).into(t, &own)
	if own.OrderTask == nil || own.OrderTask.Status != "SUCCEEDED" || own.Order == nil || own.Order.Status != "PENDING_PAYMENT" {
		t.Errorf("the owner sees %+v %+v", own.OrderTask, own.Order)
	}
}

// awaitSale waits until the API process has loaded a sale created by the test.
func (s *site) awaitSale(saleID string) {
	s.t.Helper()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		var data struct{ Sale *struct{ ID string } }
		s.ask("", `query($i: ID!) { sale(by: {id: $i}) { id } }`, map[string]any{"i": saleID}).into(s.t, &data)
		return data.Sale != nil
	}, "the process knows sale "+saleID)
}

func TestErrorsOfAResponseAreInTheLanguageOfTheReader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api")
	for name, c := range map[string]struct{ document, token, want string }{
		"no principal":  {`{ inbox { totalCount } }`, "", "请先登录。"},
		"invalid token": {`{ serverTime }`, "Bearer made up", "请先登录。"},
		"bad argument":  {`{ goods(first: 1, last: 1) { edges { cursor } } }`, "", "请求参数有误："},
	} {
		body, err := json.Marshal(map[string]string{"query": c.document})
		if err != nil {
			t.Fatal(err)
		}
		res := s.from(t, s.url, http.MethodPost, string(body), "Sec-Fetch-Site", "same-origin", "Accept-Language", "zh-CN", "Authorization", c.token)
		var out answer
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil || len(out.Errors) != 1 || !strings.HasPrefix(out.Errors[0].Message, c.want) {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// awaitNoPermit waits until no buyer has an unused path token of an item: a new captcha voids
// them without being waited for.
func (s *site) awaitNoPermit(made *seed.Result) {
	s.t.Helper()
	conn, err := redisconn.Open(s.t.Context(), s.cfg.RedisURL.Reveal())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	keys, shard := reservation.Keys{Prefix: s.cfg.RedisPrefix}, id.ShardOf(parsed[id.Sale](s.t, id.KindSale, made.SaleID))
	permits := keys.Permits(shard, parsed[id.Item](s.t, id.KindItem, made.ItemID))
	testenv.Eventually(s.t, testenv.Wait, func() bool { return conn.Cmd.ZCard(s.t.Context(), permits).Val() == 0 }, "no permit is left")
}
