package system_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/reservation"
	"seckill/internal/identity/account"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// pressOnly are the buyers with a code of the batches press.
var pressOnly = access.Rules{{Kind: access.ByCode, Name: "Press", Source: "press"}}

// codes creates a batch of codes of a sale and returns its number and the codes.
func (s *site) codes(token, saleID string, n, uses int) (batch int, texts []string) {
	s.t.Helper()
	var made struct {
		CreateAccessCodes struct {
			Batch *struct {
				Number int
				Valid  bool
			}
			UserErrors
		}
	}
	s.ask(token, `mutation($in: CreateAccessCodesInput!) { createAccessCodes(input: $in) { batch { number valid } userErrors { code path } } }`,
		map[string]any{"in": map[string]any{"saleId": saleID, "source": "press", "codes": n, "uses": uses}}).into(s.t, &made)
	b := made.CreateAccessCodes.Batch
	if b == nil || !b.Valid {
		s.t.Fatalf("createAccessCodes: %+v", made)
	}
	var data struct{ AccessCodes []struct{ Code string } }
	s.ask(token, `query($s: ID!, $b: Int!) { accessCodes(saleId: $s, batch: $b, first: 1000) { code number revoked } }`,
		map[string]any{"s": saleID, "b": b.Number}).into(s.t, &data)
	for _, c := range data.AccessCodes {
		texts = append(texts, c.Code)
	}
	if len(texts) != n {
		s.t.Fatalf("%d codes, want %d", len(texts), n)
	}
	return b.Number, texts
}

// redeem redeems a code and returns the refusal.
func (s *site) redeem(token string, made *seed.Result, code string) string {
	s.t.Helper()
	var slug string
	saleID, err := id.ParseSale(made.SaleID)
	if err == nil {
		err = s.database().SQL.QueryRowContext(s.t.Context(), "SELECT slug FROM sales WHERE id = $1", saleID).Scan(&slug)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return s.mutate(token, "redeemAccessCode", "sale { id }", map[string]any{"slug": slug, "code": code}).why()
}

// loseGate removes the gate of the item from Redis.
func (s *site) loseGate(made *seed.Result) {
	s.t.Helper()
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		s.t.Fatal(err)
	}
	item, err := id.ParseItem(made.ItemID)
	if err == nil {
		err = s.conn().Cmd.Del(s.t.Context(), reservation.Keys{Prefix: s.cfg.RedisPrefix}.Item(id.ShardOf(saleID), item)).Err()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestACodeGivesAccessAndIsUsedUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other := s.seed(seed.Input{Users: 1, Stock: 1})
	made := s.ruled(pressOnly, 0)
	s.start("api") // a second process, which learns of redeemed codes
	_, crm := s.serviceToken(s.staff("carla@example.com", "ADMIN"), "SALES_WRITE")
	batch, codes := s.codes(crm, made.SaleID, 3, 1)
	_, others := s.codes(crm, other.SaleID, 1, 1)
	first, second := made.Users[0].AccessToken, made.Users[1].AccessToken
	s.refusedBefore(first, made, "NO_ACCESS")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.redeem(first, made, others[0]) == "CODE_OTHER_SALE" }, "the batches are read")
	if why := s.redeem(first, made, codes[0][:22]+"u"); why != "CODE_INVALID" {
		t.Errorf("a code that was made up: %q", why)
	}
	revoke := func(number int) {
		t.Helper()
		for range 2 { // the second call changes nothing
			if why := s.mutate(crm, "revokeAccessCodes", "batch { revokedCodes }", map[string]any{"saleId": made.SaleID, "batch": batch, "number": number}).why(); why != "" {
				t.Errorf("revokeAccessCodes: %s", why)
			}
		}
	}
	revoke(2)
	testenv.Eventually(t, testenv.Wait, func() bool { return s.redeem(first, made, codes[1]) == "CODE_REVOKED" }, "the code is revoked")

	typed := strings.ToLower(strings.ReplaceAll(codes[0], "-", " "))
	for _, buyer := range []string{first, first, second} {
		if why := s.redeem(buyer, made, typed); why != "" {
			t.Fatalf("redeemed: %s", why)
		}
	}
	if v := s.accessOf(first, made.SaleID); v.Action != "BUY" || v.Access == nil || !v.Access.Open || v.Access.Rule.Name != "Press" {
		t.Errorf("with a code: %+v", v)
	}
	path, _, why := s.knock("issueSeckillPath", second, made)
	if why != "" {
		t.Fatalf("the second buyer: %s", why)
	}
	task := s.bought(first, made)
	if p, err := s.place(second, order(made.ItemID, path)); err != nil || p.OrderTask != nil || p.why() != "CODE_USED" {
		t.Errorf("a used code: %+v %v", p, err)
	}
	third := made.Users[2].AccessToken
	if why := s.redeem(third, made, codes[0]); why != "CODE_USED" {
		t.Errorf("redeemed after its use: %q", why)
	}
	s.drained(made.SaleID, 1)
	s.loseGate(made) // it is built from the record, which has the use
	testenv.Eventually(t, patience, func() bool {
		p, err := s.place(second, order(made.ItemID, path))
		return err == nil && p.why() == "PATH_INVALID" // of the lost gate
	}, "the gate is built")
	testenv.Eventually(t, patience, func() bool { _, why := s.press(second, made); return why == "CODE_USED" }, "the use is known")
	s.audit(made.SaleID)
	s.cancel(first, task)
	s.bought(second, made) // the use returned
	s.drained(made.SaleID, 1)

	revoke(1)
	testenv.Eventually(t, testenv.Wait, func() bool { v := s.accessOf(first, made.SaleID); return v.Access != nil && !v.Access.Open }, "the access ends")
	for _, event := range s.securityLog(account.EventCodes) {
		if strings.Contains(fmt.Sprint(event), codes[0]) {
			t.Errorf("a code in the security log: %+v", event)
		}
	}
	log := s.ask(s.staff("ann@example.com", "OPERATOR"), `query($id: ID!) { sale(by: {id: $id}) { accessCodes { number revokedCodes } timeline { action } } }`, map[string]any{"id": made.SaleID})
	if text := string(log.Data); strings.Count(text, `"CHANGE_CODES"`) != 3 || !strings.Contains(text, `"revokedCodes":2`) || strings.Contains(text, codes[0]) {
		t.Errorf("the log: %s", text)
	}
}

// A gate that is lost between taking a unit and writing its order comes back with the use.
func TestAUseOutlivesTheGateBeforeItsOrderIsWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.seed(seed.Input{Users: 2, Stock: 5, PermitRatio: 10})
	s.rule(made, pressOnly)
	s.start("api", "scheduler")
	_, codes := s.codes(s.staff("ann@example.com", "OPERATOR"), made.SaleID, 1, 1)
	first, second := made.Users[0].AccessToken, made.Users[1].AccessToken
	testenv.Eventually(t, testenv.Wait, func() bool { return s.redeem(first, made, codes[0]) == "" }, "the code is redeemed")
	if why := s.redeem(second, made, codes[0]); why != "" {
		t.Fatal(why)
	}
	s.bought(first, made)
	s.loseGate(made)
	testenv.Eventually(t, patience, func() bool { _, why := s.press(second, made); return why == "CODE_USED" }, "the gate is built with the use")
	s.start("worker")
	s.drained(made.SaleID, 1)
	if _, why := s.press(second, made); why != "CODE_USED" {
		t.Errorf("after the order was written: %q", why)
	}
}

func TestGuessesOfACodeAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	made := s.ruled(pressOnly, 0)
	guesses := 0
	for guesses < 20 && s.redeem(made.Users[0].AccessToken, made, strings.Repeat("0", 21)) == "CODE_INVALID" {
		guesses++
	}
	if guesses == 0 || guesses > 10 {
		t.Errorf("%d guesses at once", guesses)
	}
	if why := s.redeem(made.Users[1].AccessToken, made, "a guess"); why != "CODE_INVALID" {
		t.Errorf("another account: %q", why)
	}
}

// A private sale does not exist for a buyer without access, wherever they look.
func TestAPrivateSaleIsSeenByWhoHasAccess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.seed(seed.Input{Users: 3, Stock: 5, PermitRatio: 10, OpensIn: time.Hour})
	rules := access.Rules{{Kind: access.List, Name: "Members", Source: "vip"}, {Kind: access.ByCode, Name: "Press", Source: "press", After: 60}}
	if _, err := s.database().SQL.ExecContext(t.Context(), "UPDATE sales SET private = true"); err != nil {
		t.Fatal(err)
	}
	s.rule(made, rules)
	s.start("api", "worker", "scheduler")
	operator := s.staff("ann@example.com", "OPERATOR")
	_, codes := s.codes(operator, made.SaleID, 1, 1)
	member, press, stranger := made.Users[0].AccessToken, made.Users[1].AccessToken, made.Users[2].AccessToken
	s.changeMembers(operator, "ADD", s.userOf(member))

	var item struct {
		Sale struct {
			Slug  string
			Items []struct{ Goods struct{ ID string } }
		}
	}
	s.ask(operator, `query($id: ID!) { sale(by: {id: $id}) { slug items { goods { id } } } }`, map[string]any{"id": made.SaleID}).into(t, &item)
	const everywhere = `query($id: ID!, $slug: String!, $item: ID!, $goods: ID!) {
		byId: sale(by: {id: $id}) { id } bySlug: sale(by: {slug: $slug}) { id }
		sale: node(id: $id) { id } item: node(id: $item) { id } product: node(id: $goods) { id }
		sales { nodes { id private } totalCount } goods { nodes { id } }
	}`
	variables := map[string]any{"id": made.SaleID, "slug": item.Sale.Slug, "item": made.ItemID, "goods": item.Sale.Items[0].Goods.ID}
	const nothing = `{"byId":null,"bySlug":null,"sale":null,"item":null,"product":null,"sales":{"nodes":[],"totalCount":0},"goods":{"nodes":[]}}`
	for name, token := range map[string]string{"a visitor": "", "a stranger": stranger, "a buyer with a code that is not redeemed": press} {
		if out := s.ask(token, everywhere, variables); string(out.Data) != nothing {
			t.Errorf("%s sees %s %+v", name, out.Data, out.Errors)
		}
	}
	for _, field := range []string{"issueSeckillPath", "joinWaitlist"} {
		if why := s.asked(field, stranger, made.ItemID, map[string]any{"challengeId": "cap_none", "answer": "1"}); why != "NOT_FOUND" {
			t.Errorf("%s: %q", field, why)
		}
	}
	if p, err := s.place(stranger, order(made.ItemID, "none")); err != nil || p.why() != "NOT_FOUND" {
		t.Errorf("placeOrder: %+v %v", p, err)
	}
	if code, _, rules := s.refusedCaptcha(stranger, made.SaleID); code != "NOT_FOUND" || rules != "" {
		t.Errorf("createCaptcha: %s %s", code, rules)
	}
	if why := s.redeem(stranger, made, strings.Repeat("0", 21)); why != "CODE_INVALID" {
		t.Errorf("a guess: %q", why)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.redeem(press, made, codes[0]) == "" }, "the code is redeemed")
	for name, token := range map[string]string{"a member": member, "a buyer with a code": press, "an operator": operator} {
		var seen struct {
			ByID, BySlug, Sale, Item *struct{ ID string }
			Sales                    struct {
				Nodes []struct{ Private bool }
			}
		}
		out := s.ask(token, everywhere, variables)
		if err := json.Unmarshal(out.Data, &seen); err != nil || seen.ByID == nil || seen.BySlug == nil || seen.Sale == nil || seen.Item == nil ||
			len(seen.Sales.Nodes) != 1 || !seen.Sales.Nodes[0].Private {
			t.Errorf("%s sees %s %+v", name, out.Data, out.Errors)
		}
	}
	if code, from, rules := s.refusedCaptcha(press, made.SaleID); code != "NO_ACCESS" || from == nil || rules != "LIST Members;CODE Press;" {
		t.Errorf("before the time of the code: %s %v %s", code, from, rules)
	}
}

// Links to a private sale are shared: other sites and messengers preview them, and its public files are
// asked for. All answer as they do for a sale that does not exist.
func TestALinkToAPrivateSaleShowsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.seed(seed.Input{Users: 2, Stock: 5, PermitRatio: 10})
	open := s.seed(seed.Input{Users: 1, Stock: 5})
	rules := access.Rules{{Kind: access.List, Name: "Members", Source: "vip"}}
	if _, err := s.database().SQL.ExecContext(t.Context(), "UPDATE sales SET private = true WHERE id = $1", parsed[id.Sale](t, id.KindSale, made.SaleID).UUID()); err != nil {
		t.Fatal(err)
	}
	s.rule(made, rules)
	s.start("api", "worker", "scheduler")
	operator, member := s.staff("ann@example.com", "OPERATOR"), made.Users[0].AccessToken
	s.changeMembers(operator, "ADD", s.userOf(member))
	type named struct {
		Slug, Title string
		Items       []struct{ Goods struct{ ID, Name string } }
	}
	read := func(sale string) (v named) {
		var data struct{ Sale named }
		s.ask(operator, `query($id: ID!) { sale(by: {id: $id}) { slug title items { goods { id name } } } }`, map[string]any{"id": sale}).into(t, &data)
		return data.Sale
	}
	private, public := read(made.SaleID), read(open.SaleID)
	secrets := []string{private.Title, made.SaleID, made.ItemID, private.Items[0].Goods.ID}
	if public.Title == private.Title {
		secrets = secrets[1:]
	}
	for _, token := range []string{"", made.Users[1].AccessToken, member} {
		get := func(path, accept string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", accept)
			req.Header.Set("User-Agent", "Slackbot-LinkExpanding 1.0")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			res, err := s.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, string(text)
		}
		if _, page := get("/s/"+public.Slug, "*/*"); !strings.Contains(page, "og:title") || !strings.Contains(page, public.Items[0].Goods.Name) {
			t.Fatalf("the link to an open sale has no preview: %s", page)
		}
		for path, missing := range map[string]string{
			"/s/" + private.Slug: "/s/no-such-sale", "/draws/" + made.ItemID + ".json": "/draws/" + id.New[id.Item]().Public() + ".json",
		} {
			for _, accept := range []string{"*/*", "text/html", "application/json+oembed"} {
				status, page := get(path, accept)
				none, other := get(missing, accept)
				if status != none || strings.ReplaceAll(page, path[strings.LastIndexByte(path, '/')+1:], missing[strings.LastIndexByte(missing, '/')+1:]) != other {
					t.Errorf("%s as %s: %d %s, want what %s answers: %d %s", path, accept, status, page, missing, none, other)
				}
			}
		}
		for _, path := range []string{"/", "/s/" + private.Slug} {
			_, page := get(path, "text/html")
			for _, secret := range secrets {
				if strings.Contains(page, secret) {
					t.Errorf("%s says %s", path, secret)
				}
			}
		}
	}
}
