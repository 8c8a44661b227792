package system_test

import (
	"context"
	bits "encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// drawn is the part of an answer about a draw.
type drawn struct {
	Node *struct {
		Draw *struct{ Nonce, Number string }
		Item struct {
			Draw struct{ Commitment, Seed string }
		}
	}
}

func (s *site) drawOf(token, ticket string) (d drawn) {
	s.t.Helper()
	s.ask(token, `query($t: ID!) { node(id: $t) { ... on QueueTicket { draw { nonce number } item { draw { commitment seed } } } } }`,
		map[string]any{"t": ticket}).into(s.t, &d)
	return d
}

func TestANumberOfTheDrawIsCheckedAfterTheOpening(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 1, OpensIn: time.Hour})
	const nonce = "a nonce of the client"
	enter := func(token string, more map[string]any) (ticket, why string) {
		in := map[string]any{"itemId": made.ItemID, "captcha": s.puzzle(token, made.SaleID)}
		for field, value := range more {
			in[field] = value
		}
		var data struct {
			EnterQueue struct {
				Ticket *struct{ ID string }
				UserErrors
			}
		}
		out := s.ask(token, `mutation($in: EnterQueueInput!) { enterQueue(input: $in) { ticket { id } userErrors { code } } }`, map[string]any{"in": in})
		if out.code() != "" {
			return "", out.code()
		}
		out.into(t, &data)
		if data.EnterQueue.Ticket == nil {
			return "", data.EnterQueue.why()
		}
		return data.EnterQueue.Ticket.ID, ""
	}
	first, second := made.Users[0].AccessToken, made.Users[1].AccessToken
	if _, why := enter(first, map[string]any{"drawNonce": "short"}); why != "INVALID_INPUT" {
		t.Errorf("a short nonce: %q", why)
	}
	chosen, why := enter(first, map[string]any{"drawNonce": nonce})
	if why != "" {
		t.Fatal(why)
	}
	silent, why := enter(second, nil)
	if why != "" {
		t.Fatal(why)
	}
	before := s.drawOf(first, chosen)
	if before.Node.Draw.Nonce != nonce || before.Node.Draw.Number != "" || before.Node.Item.Draw.Seed != "" || len(before.Node.Item.Draw.Commitment) != 64 {
		t.Fatalf("before the opening: %+v", before.Node)
	}
	if d := s.drawOf(second, silent); d.Node.Draw.Nonce != silent {
		t.Errorf("without a nonce: %+v", d.Node.Draw)
	}
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.database().Ent.Sale.UpdateOneID(saleID).SetPreheatAt(time.Now().Add(-time.Hour)).SetStartsAt(time.Now().Add(-2 * time.Minute)).AddRevision(1).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	var after drawn
	testenv.Eventually(t, testenv.Wait, func() bool {
		after = s.drawOf(first, chosen)
		return after.Node.Item.Draw.Seed != ""
	}, "the seed is public")
	key, err := sale.ParseDrawSeed(after.Node.Item.Draw.Seed)
	if err != nil {
		t.Fatal(err)
	}
	if key.Commitment() != before.Node.Item.Draw.Commitment {
		t.Error("the shop committed to another seed")
	}
	if want := strconv.FormatUint(key.Number(nonce), 10); after.Node.Draw.Number != want {
		t.Errorf("number %s, want %s", after.Node.Draw.Number, want)
	}
}

func TestAnAcceptedOrderHasAReceiptThatOthersCanCheck(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 1})
	task := s.bought(made.Users[0].AccessToken, made)
	read := func(token string) string {
		var data struct {
			OrderTask *struct{ SignedReceipt string }
		}
		s.ask(token, `query($t: ID!) { orderTask(id: $t) { signedReceipt } }`, map[string]any{"t": task}).into(t, &data)
		if data.OrderTask == nil {
			return ""
		}
		return data.OrderTask.SignedReceipt
	}
	keys := s.get(t.Context(), "/.well-known/jwks.json")
	claims, err := acceptance.Verify(read(made.Users[0].AccessToken), keys)
	if err != nil {
		t.Fatal(err)
	}
	if claims.ID != task || claims.Sale != made.SaleID || claims.Item != made.ItemID || claims.Quantity != 1 || time.Since(claims.IssuedAt.Time) > testenv.Wait {
		t.Errorf("claims %+v", claims)
	}
	if receipt := read(made.Users[1].AccessToken); receipt != "" {
		t.Errorf("another user reads %s", receipt)
	}
	log := acceptance.LogsPath + made.SaleID + "/"
	testenv.Eventually(t, testenv.Wait, func() bool {
		resp, err := s.http.Get(s.url + log + "checkpoint")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, "the acceptance is in the log")
	entry, _, err := acceptance.VerifyProof(s.get(t.Context(), log+"proof/"+task), keys)
	if err != nil || entry.Task != task || entry.Buyer != acceptance.BuyerHash(task, claims.Subject) {
		t.Errorf("proof of %+v, %v", entry, err)
	}
	report, err := acceptance.VerifyLog(t.Context(), func(ctx context.Context, path string) ([]byte, error) { return s.get(ctx, log+path), nil }, keys)
	if err != nil || report.Items[made.ItemID] == nil || report.Items[made.ItemID].Most != 1 {
		t.Errorf("log %+v, %v", report, err)
	}
}

// A buyer can make up the id of a task that no store has, and such a task is answered as
// FAILED; the shop does not sign that it accepted it.
func TestATaskThatNoStoreHasHasNoReceipt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	token := made.Users[0].AccessToken
	var data struct {
		Viewer    struct{ ID string }
		OrderTask *struct{ Status string }
	}
	s.ask(token, `{ viewer { id } }`, nil).into(t, &data)
	user, err1 := id.ParseUser(data.Viewer.ID)
	saleID, err2 := id.ParseSale(made.SaleID)
	item, err3 := id.ParseItem(made.ItemID)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	forged := id.NewTaskOf(saleID, item, user)
	bits.BigEndian.PutUint32(forged[:4], bits.BigEndian.Uint32(forged[:4])-2) // 131 s earlier
	ask := func(field string) answer {
		return s.ask(token, `query($t: ID!) { orderTask(id: $t) { `+field+` } }`, map[string]any{"t": forged.Public()})
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		ask("status").into(t, &data)
		return data.OrderTask != nil && data.OrderTask.Status == "FAILED"
	}, "the task is answered as failed")
	if got := ask("signedReceipt"); got.code() != "NOT_FOUND" || strings.Contains(string(got.Data), "eyJ") {
		t.Errorf("receipt: %s %s", got.Data, got.code())
	}
}

// get returns the body of a public page.
func (s *site) get(ctx context.Context, path string) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %v", path, resp.Status, err)
	}
	return body
}

func TestStaffReadTheHeadOfTheLogOfASale(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api")
	operator := s.staff("opal@example.com", "OPERATOR")
	saleID := s.draft(operator)
	type seal struct {
		Number, Entries int
		Head            string
	}
	read := func(token string) (*seal, string) {
		var data struct{ Sale struct{ LogSeal *seal } }
		out := s.ask(token, `query($s: ID!) { sale(by: {id: $s}) { logSeal { number entries head } } }`, map[string]any{"s": saleID})
		out.into(t, &data)
		return data.Sale.LogSeal, out.code()
	}
	if last, code := read(operator); last != nil || code != "" {
		t.Errorf("before the first seal: %+v %s", last, code)
	}
	sealer := &audit.Sealer{DB: s.database(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)}
	if _, err := sealer.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if last, code := read(operator); last == nil || last.Number != 1 || last.Entries < 1 || len(last.Head) != 64 {
		t.Errorf("after it: %+v %s", last, code)
	}
}

// An order that was paid late has a reservation whose name is no task: an attempt on its
// item is refused without a task, and nothing is signed.
func TestTheReservationOfALateOrderIsNoAcceptedTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 5})
	token := made.Users[0].AccessToken
	var viewer struct{ Viewer struct{ ID string } }
	s.ask(token, `{ viewer { id } }`, nil).into(t, &viewer)
	conn, err := redisconn.Open(t.Context(), s.cfg.RedisURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	gate := reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: reservation.Keys{Prefix: s.cfg.RedisPrefix}, Timeout: testenv.Wait})
	held, err := gate.Reacquire(t.Context(), reservation.Reacquire{Quantity: 1, Ref: reservation.Ref{
		Sale: parsed[id.Sale](t, id.KindSale, made.SaleID), Item: parsed[id.Item](t, id.KindItem, made.ItemID),
		User: parsed[id.User](t, id.KindUser, viewer.Viewer.ID), Task: payment.LateReservation(id.New[id.Order]()),
	}})
	if err != nil || held.Code != reservation.Reacquired {
		t.Fatalf("%+v, %v", held, err)
	}
	var data struct {
		PlaceOrder struct {
			OrderTask *struct{ ID, SignedReceipt string }
			UserErrors
		}
	}
	in := order(made.ItemID, "a guess")
	in["quantity"] = 10
	s.ask(token, `mutation($in: PlaceOrderInput!) { placeOrder(input: $in) { orderTask { id signedReceipt } userErrors { code } } }`,
		map[string]any{"in": in}).into(t, &data)
	if data.PlaceOrder.OrderTask != nil || data.PlaceOrder.why() != "PATH_INVALID" {
		t.Errorf("%+v", data.PlaceOrder)
	}
}
