package system_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/app"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// staff creates an account with a role and signs it in.
func (s *site) staff(account, role string) string {
	s.t.Helper()
	_, err := app.CreateUser(s.t.Context(), s.cfg, app.NewUser{Account: account, Role: role, DisplayName: role, Password: "a long password"})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.login(account, "a long password")
}

// mutate runs a mutation with one input and returns its payload; it fails the test on
// errors.
func (s *site) mutate(token, field, selection string, input map[string]any) (payload struct {
	Sale, Goods, Intervention, Order map[string]any
	UserErrors
}) {
	s.t.Helper()
	name := strings.ToUpper(field[:1]) + field[1:] + "Input!"
	out := s.ask(token, "mutation M($in: "+name+") { payload: "+field+"(input: $in) { "+selection+" userErrors { __typename code path } } }",
		map[string]any{"in": input})
	var data struct{ Payload json.RawMessage }
	out.into(s.t, &data)
	if out.code() != "" || len(data.Payload) == 0 {
		s.t.Fatalf("%s: %s %+v", field, out.Data, out.Errors)
	}
	if err := json.Unmarshal(data.Payload, &payload); err != nil {
		s.t.Fatal(err)
	}
	return payload
}

const saleParts = "sale { id status revision notice items { id } switches { captchaRequired permitRatio } }"

// onSale runs a mutation on a sale and requires one of the listed statuses afterwards.
func (s *site) onSale(token, field, saleID, note, status string) map[string]any {
	s.t.Helper()
	in := map[string]any{"saleId": saleID}
	if note != "" {
		in["note"] = note
	}
	p := s.mutate(token, field, saleParts, in)
	if now, _ := p.Sale["status"].(string); p.why() != "" || !strings.Contains(status, now) {
		s.t.Fatalf("%s: %v %q, want %s", field, p.Sale, p.why(), status)
	}
	return p.Sale
}

// prepare takes a sale from draft to preloaded and returns the ids of the sale and its
// item.
func (s *site) prepare(operator, admin string, stock int, opens time.Duration) (saleID, itemID string) {
	s.t.Helper()
	price := map[string]any{"amount": "49.00", "currencyCode": "CNY"}
	goods := s.mutate(operator, "createGoods", "goods { id }", map[string]any{"name": "Kettle", "listPrice": price})
	now := time.Now().UTC()
	draft := s.mutate(operator, "createSale", saleParts, map[string]any{
		"title": "Autumn", "startsAt": now.Add(30 * time.Minute).Format(time.RFC3339Nano), "endsAt": now.Add(time.Hour).Format(time.RFC3339Nano),
		"items": []any{map[string]any{"goodsId": goods.Goods["id"], "price": price, "stock": stock}},
	})
	if draft.why() != "" {
		s.t.Fatalf("createSale: %+v", draft.UserErrors)
	}
	saleID = draft.Sale["id"].(string)
	itemID = draft.Sale["items"].([]any)[0].(map[string]any)["id"].(string)
	s.onSale(operator, "submitSale", saleID, "", "PENDING_APPROVAL")
	s.onSale(admin, "approveSale", saleID, "fine", "APPROVED")
	s.opensIn(operator, saleID, opens)
	s.onSale(operator, "preheatSale", saleID, "", "PREHEATED LIVE")
	return saleID, itemID
}

// byTwo runs a mutation that needs a second person, who confirms it, and returns what the
// first one got.
func (s *site) byTwo(token, field, selection string, input map[string]any) (payload struct {
	Sale, Goods, Intervention, Order map[string]any
	UserErrors
}) {
	s.t.Helper()
	payload = s.mutate(token, field, selection+" intervention { id state }", input)
	if payload.why() != "" {
		return payload
	}
	if payload.Intervention["state"] != "REQUESTED" {
		s.t.Fatalf("%s needs no second person: %+v", field, payload)
	}
	payload.Intervention, payload.UserErrors = s.confirm(payload.Intervention["id"])
	return payload
}

// confirm confirms an intervention as a second person.
func (s *site) confirm(intervention any) (map[string]any, UserErrors) {
	s.t.Helper()
	if s.other == "" {
		s.other = s.staff("second@example.com", "OPERATOR")
	}
	p := s.mutate(s.other, "decideIntervention", "intervention { id state }", map[string]any{"interventionId": intervention, "confirm": true})
	return p.Intervention, p.UserErrors
}

// opensIn schedules the start of a sale: later if the time has passed when it is scheduled.
func (s *site) opensIn(operator, saleID string, opens time.Duration) {
	s.t.Helper()
	for ; ; opens *= 3 {
		soon := time.Now().UTC().Add(opens).Format(time.RFC3339Nano)
		p := s.byTwo(operator, "scheduleSale", saleParts, map[string]any{"saleId": saleID, "startsAt": soon})
		if p.why() == "" {
			return
		}
		if opens > testenv.Wait {
			s.t.Fatalf("scheduleSale: %+v", p.UserErrors)
		}
	}
}

func TestOperatorsTakeASaleThroughItsLife(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) {
		cfg.Media = config.Secret(t.TempDir())
		cfg.PreloadEvery = 200 * time.Millisecond
	})
	s.start("api", "worker", "scheduler")
	operator, admin, second := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN"), s.staff("bob@example.com", "OPERATOR")
	saleID, itemID := s.prepare(operator, admin, 10, 20*time.Second)
	if p := s.byTwo(operator, "setSaleSwitches", saleParts, map[string]any{"saleId": saleID, "captchaRequired": false, "permitRatio": 3}); p.why() != "" ||
		p.Sale["switches"].(map[string]any)["captchaRequired"] != true {
		t.Errorf("switches: %+v", p)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.statusOf(operator, saleID) == "LIVE" }, "the sale opens")

	buyer := s.staff("buyer@example.com", "CUSTOMER")
	path, why := s.path(buyer, itemID, "none", "none")
	if why != "" {
		t.Fatalf("a path without a captcha: %s", why)
	}
	p, err := s.place(buyer, order(itemID, path))
	if err != nil || p.why() != "" {
		t.Fatalf("%+v %v", p, err)
	}
	s.drained(saleID, 1)

	s.onSale(operator, "pauseSale", saleID, "a look at the stock", "PAUSED")
	if p, err := s.place(buyer, order(itemID, path)); err != nil || p.why() != "ALREADY_ORDERED" {
		t.Errorf("while the sale is held: %+v %v", p, err)
	}
	s.onSale(operator, "resumeSale", saleID, "", "LIVE")

	adjust := func(units int) map[string]any {
		return map[string]any{"itemId": itemID, "units": units, "note": "as we go", "idempotencyKey": uuid.NewString()}
	}
	if p := s.mutate(operator, "adjustStock", "intervention { id state units }", adjust(5)); p.why() != "" || p.Intervention["state"] != "DONE" {
		t.Errorf("five more: %+v", p)
	}
	if p := s.byTwo(operator, "adjustStock", "", adjust(-15)); p.why() != "CONFLICT" {
		t.Errorf("more than is left: %+v", p)
	}
	large := s.mutate(operator, "adjustStock", "intervention { id state }", adjust(1000))
	decide := map[string]any{"interventionId": large.Intervention["id"], "confirm": true}
	if p := s.mutate(operator, "decideIntervention", "intervention { state }", decide); p.why() != "CONFLICT" {
		t.Errorf("confirmed by the same person: %+v", p)
	}
	if p := s.mutate(second, "decideIntervention", "intervention { state decidedBy { displayName } }", decide); p.why() != "" || p.Intervention["state"] != "DONE" {
		t.Errorf("confirmed by another: %+v", p)
	}
	orderID := s.search(operator, "buyer@example.com")
	if p := s.mutate(operator, "voidOrder", "order { status } intervention { state }", map[string]any{"orderId": orderID, "note": "a robot"}); p.why() != "" ||
		p.Order["status"] != "CANCELLED" {
		t.Errorf("void: %+v", p)
	}
	end := `mutation($id: ID!) { endSale(input: {saleId: $id, note: "enough"}) { sale { status } userErrors { code } } }`
	if code := s.ask(operator, end, map[string]any{"id": saleID}).code(); code != "FORBIDDEN" {
		t.Errorf("ended by an operator: %q", code)
	}
	s.onSale(admin, "endSale", saleID, "enough (كفى)", "ENDED")
	s.follow(operator, saleID)
}

// follow reads the live log of a sale from its beginning, and its live figures.
func (s *site) follow(token, saleID string) {
	s.t.Helper()
	k := s.dial(token)
	k.send(frame{ID: "log", Type: "subscribe", Payload: subscription(s.t, `subscription($id: ID!) { saleFeed(saleId: $id, after: "0-0") { kind cursor message order { id } } }`, saleID)})
	seen := ""
	for !strings.Contains(seen, "enough") || !strings.Contains(seen, "cancelled") {
		var event struct {
			Data struct {
				SaleFeed struct{ Kind, Cursor, Message string }
			}
		}
		f := k.read()
		if err := json.Unmarshal(f.Payload, &event); err != nil || f.Type != "next" || event.Data.SaleFeed.Cursor == "" {
			s.t.Fatalf("%+v %s %v", f, f.Payload, err)
		}
		if seen == "" && event.Data.SaleFeed.Kind != "SNAPSHOT" {
			s.t.Errorf("the first event: %s", f.Payload)
		}
		seen += event.Data.SaleFeed.Kind + " " + event.Data.SaleFeed.Message + "\n"
	}
	for _, line := range []string{"The system: opened it (Live)", "a look at the stock", "Orders written: 1", "Orders cancelled: 1", "created the sale", "ADMIN: ended it (Ended) – \u2068enough (كفى)\u2069"} {
		if !strings.Contains(seen, line) {
			s.t.Errorf("no line %q in\n%s", line, seen)
		}
	}
	k = s.dial(token)
	k.send(frame{ID: "figures", Type: "subscribe", Payload: subscription(s.t, `subscription($id: ID!) { saleStats(saleId: $id) { kind saleStats { totalUnits orders } } }`, saleID)})
	for i, kind := range []string{"SNAPSHOT", "UPDATE"} {
		if f := k.read(); !strings.Contains(string(f.Payload), `"kind":"`+kind+`"`) || !strings.Contains(string(f.Payload), `"orders":1`) {
			s.t.Errorf("event %d of the figures: %s", i, f.Payload)
		}
	}
}

func subscription(t testing.TB, document, saleID string) json.RawMessage {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"query": document, "variables": map[string]string{"id": saleID}})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// statusOf returns the status of a sale.
func (s *site) statusOf(token, saleID string) string {
	s.t.Helper()
	var data struct{ Sale struct{ Status string } }
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { status } }`, map[string]any{"id": saleID}).into(s.t, &data)
	return data.Sale.Status
}

// search returns the only order that a search text finds.
func (s *site) search(token, text string) string {
	s.t.Helper()
	var data struct {
		Orders struct{ Nodes []struct{ ID string } }
	}
	s.ask(token, `query($t: String!) { orders(filter: { search: $t }) { nodes { id } } }`, map[string]any{"t": text}).into(s.t, &data)
	if len(data.Orders.Nodes) != 1 {
		s.t.Fatalf("%d orders by %q", len(data.Orders.Nodes), text)
	}
	return data.Orders.Nodes[0].ID
}

func TestPicturesOfGoodsAreUploadedAndServed(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.Media = config.Secret(t.TempDir()) })
	s.start("api")
	operator, buyer := s.staff("ann@example.com", "OPERATOR"), s.staff("buyer@example.com", "CUSTOMER")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewNRGBA(image.Rect(0, 0, 300, 300))); err != nil {
		t.Fatal(err)
	}
	upload := func(token string, body []byte) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/media/", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "image/png")
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var made struct{ URL string }
		_ = json.NewDecoder(res.Body).Decode(&made)
		return res.StatusCode, made.URL
	}
	if code, _ := upload(buyer, picture.Bytes()); code != http.StatusForbidden {
		t.Errorf("by a customer: %d", code)
	}
	if code, _ := upload(operator, append(picture.Bytes(), make([]byte, 200<<10)...)); code != http.StatusCreated {
		t.Errorf("a picture above the bound of other bodies: %d", code)
	}
	code, address := upload(operator, picture.Bytes())
	if code != http.StatusCreated {
		t.Fatalf("upload: %d", code)
	}
	price := map[string]any{"amount": "49.00", "currencyCode": "CNY"}
	const alt = "A white kettle with a curved spout"
	p := s.mutate(operator, "createGoods", "goods { id imageUrl imageAlt }", map[string]any{"name": "Kettle", "listPrice": price, "imageUrl": address, "imageAlt": " " + alt})
	if p.why() != "" || p.Goods["imageUrl"] != address || p.Goods["imageAlt"] != alt {
		t.Errorf("goods: %+v", p)
	}
	for given, want := range map[string]any{strings.Repeat("白", 200) + " ": strings.Repeat("白", 200), "": nil} {
		p = s.mutate(operator, "updateGoods", "goods { id imageUrl imageAlt }", map[string]any{"goodsId": p.Goods["id"], "imageAlt": given})
		if p.why() != "" || p.Goods["imageUrl"] != address || p.Goods["imageAlt"] != want {
			t.Errorf("alternative text %q: %+v", given, p)
		}
	}
	ofERP := map[string]any{"externalId": "erp:1", "name": "Pot", "listPrice": price, "imageUrl": address, "imageAlt": alt}
	if p = s.mutate(operator, "upsertGoods", "goods { id imageAlt }", ofERP); p.why() != "" || p.Goods["imageAlt"] != alt {
		t.Errorf("goods of another system: %+v", p)
	}
	res, err := s.http.Get(s.url + address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "image/png" || len(body) == 0 {
		t.Errorf("served: %d %v", res.StatusCode, err)
	}
}
