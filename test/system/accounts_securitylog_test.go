package system_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/generated"
	"seckill/internal/app"
	"seckill/internal/identity/account"
	"seckill/internal/ops/seed"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
)

// securityLog returns the entries of a kind, oldest first.
func (s *site) securityLog(kind account.EventKind) (found []account.Event) {
	s.t.Helper()
	err := app.ChangeUsers(s.t.Context(), s.cfg, slog.New(slog.DiscardHandler), func(u app.Users) error {
		events, err := u.Security.Since(s.t.Context(), time.Now().Add(-time.Hour), id.User{})
		for i := len(events) - 1; i >= 0; i-- {
			if events[i].Kind == kind {
				found = append(found, events[i])
			}
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// userOf returns the id of the user of a token.
func (s *site) userOf(token string) string {
	s.t.Helper()
	var data struct{ Viewer struct{ ID string } }
	s.ask(token, `{ viewer { id } }`, nil).into(s.t, &data)
	return data.Viewer.ID
}

func TestTheSecurityLogNamesWhoExportedOrSearched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	operator, admin := s.staff("operator@example.com", "OPERATOR"), s.staff("admin@example.com", "ADMIN")
	export := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/exports/orders.csv?sale="+made.SaleID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	if got := export(operator); got != http.StatusOK {
		t.Fatalf("an operator exports: %d", got)
	}
	for _, token := range []string{"", made.Users[0].AccessToken} {
		if got := export(token); got == http.StatusOK {
			t.Errorf("a stranger exports: %d", got)
		}
	}
	const secret = "buyer-to-be-found"
	for token, query := range map[string]string{
		operator: `{ searchUsers(text: "` + secret + `") { id } }`,
		admin:    `{ orders(filter: { search: "` + secret + `" }) { nodes { id } } users(first: 5, search: "` + secret + `") { edges { node { id } } } }`,
	} {
		if out := s.ask(token, query, nil); out.code() != "" {
			t.Fatalf("%s: %+v", query, out.Errors)
		}
	}
	if out := s.ask(admin, `{ orders(filter: { search: "`+made.SaleID+`" }) { nodes { id } } }`, nil); out.code() != "" { // searches no buyer
		t.Fatalf("%+v", out.Errors)
	}
	entries := map[account.EventKind][]account.Event{}
	for _, kind := range []account.EventKind{account.EventExport, account.EventBuyerSearch} {
		entries[kind] = s.securityLog(kind)
		for _, e := range entries[kind] {
			if e.Addr.String() != "127.0.0.1" {
				t.Errorf("%s by %s came from %s", kind, e.Actor, e.Addr)
			}
			for _, hidden := range []string{secret, "@", "Bearer", operator, admin} {
				if strings.Contains(e.Detail, hidden) {
					t.Errorf("%s says %q", kind, e.Detail)
				}
			}
		}
	}
	count := func(kind account.EventKind, by string) (n int) {
		for _, e := range entries[kind] {
			if e.Actor.Public() == by {
				n++
			}
		}
		return n
	}
	by := map[string]string{"operator": s.userOf(operator), "admin": s.userOf(admin)}
	if n := count(account.EventExport, by["operator"]); n != 1 || len(entries[account.EventExport]) != 1 || entries[account.EventExport][0].Detail != made.SaleID {
		t.Errorf("exports: %+v", entries[account.EventExport])
	}
	if n, m := count(account.EventBuyerSearch, by["operator"]), count(account.EventBuyerSearch, by["admin"]); n != 1 || m != 2 {
		t.Errorf("searches for buyers: %d by the operator, want 1; %d by the administrator, want 2: %+v", n, m, entries[account.EventBuyerSearch])
	}
}

// reads are the fields of Query that show staff personal data of buyers, each with what is
// asked of it and the entry that it leaves; "" = none.
var reads = map[string]struct{ ask, entry string }{
	"orders":            {`orders(first: 5, filter: {saleId: "$SALE", search: "20"}) { edges { node { buyer { account } recipient { phone } } } }`, "orders(filter: {saleId: $SALE, search: …})"},
	"searchUsers":       {`searchUsers(text: "$ACCOUNT") { account }`, "searchUsers(text: …)"},
	"users":             {`users(first: 9) { edges { node { displayName } } }`, "users"},
	"userByExternalId":  {`userByExternalId(externalId: "crm-1") { externalId }`, "userByExternalId"},
	"order":             {`order(by: { id: "$ORDER" }) { buyer { account } }`, "order"},
	"refunds":           {`refunds(first: 5) { edges { node { order { buyer { account } } } } }`, "refunds"},
	"inbox":             {`inbox { entries { order { recipient { city } } } }`, "inbox.entries"},
	"interventions":     {`interventions { edges { node { order { buyer { account } } } } }`, "interventions"},
	"heldPayments":      {`heldPayments(provider: "sandbox") { edges { node { order { buyer { account } } } } }`, "heldPayments(provider: sandbox)"},
	"deadLetter":        {`deadLetter(id: "$LETTER") { fields { value } }`, "deadLetter(id: $LETTER).fields"},
	"deadLetters":       {`deadLetters(first: 1) { edges { node { orderTask { order { buyer { account } } } } } }`, "deadLetters"},
	"deadLetterActs":    {`deadLetterActs(kind: REPLAY) { edges { node { orderTask { order { buyer { account } } } } } }`, "deadLetterActs(kind: REPLAY)"},
	"webhookDeliveries": {`webhookDeliveries(endpointId: "$ENDPOINT") { edges { node { payload } } }`, "webhookDeliveries(endpointId: $ENDPOINT)"},
	"events":            {`events(first: 100) { nodes { data { ... on OrderEventData { recipient { name } } } } }`, "events"},
	"saleTemplates":     {`saleTemplates { savedBy { account } }`, ""},
	"serviceTokens":     {`serviceTokens { createdBy { account } }`, ""},
	"node":              {`node(id: "$ORDER") { ... on Order { buyer { account } } }`, "node"},
	"nodes":             {`nodes(ids: ["$ORDER"]) { ... on Order { buyer { account } } }`, "nodes(ids: [$ORDER])"},
	"sale":              {`sale(by: {id: "$SALE"}) { clusters { edges { node { label } } } timeline { actor { account } } }`, "sale(by: {id: $SALE}).clusters"},
	"sales":             {`sales { edges { node { clusters { edges { node { label } } } } } }`, "sales"},
}

// personalTypes are the types that hold personal data of buyers.
var personalTypes = []string{"User", "Recipient", "OrderReview", "OrderCluster", "DeadLetterField", "WebhookEvent", "WebhookDelivery"}

// leadsTo reports whether a type is or leads to one with personal data.
func leadsTo(schema *ast.Schema, t string, seen map[string]bool) bool {
	if slices.Contains(personalTypes, t) {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	def := schema.Types[t]
	if slices.ContainsFunc(schema.GetPossibleTypes(def), func(d *ast.Definition) bool { return leadsTo(schema, d.Name, seen) }) {
		return true
	}
	return slices.ContainsFunc(def.Fields, func(f *ast.FieldDefinition) bool { return leadsTo(schema, f.Type.Name(), seen) })
}

func TestTheSecurityLogNamesWhoReadsPersonalDataOfBuyers(t *testing.T) {
	t.Parallel()
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	for name, def := range schema.Types {
		personal := slices.ContainsFunc(def.Fields, func(f *ast.FieldDefinition) bool {
			return slices.Contains([]string{"account", "displayName", "email", "phone", "street", "postalCode"}, f.Name)
		})
		other := []string{"ConfirmEmailPayload", "PaymentOption"} // of the caller, and of providers
		if personal && def.Kind == ast.Object && !slices.Contains(append(other, personalTypes...), name) {
			t.Errorf("reading a %s leaves no entry in the security log", name)
		}
	}
	for _, f := range schema.Query.Fields {
		auth := f.Directives.ForName("auth")
		if auth == nil || len(auth.Arguments) == 0 || !leadsTo(schema, f.Type.Name(), map[string]bool{}) {
			continue // for everyone, and shows users their own data
		}
		if _, known := reads[f.Name]; !known {
			t.Errorf("%s shows personal data to staff: which entry of the security log does it leave?", f.Name)
		}
	}
	s := newSite(t, func(cfg *config.Config) { cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	s.http.Transport = behind{s.http.Transport} // the orders are a cluster
	s.start("api", "worker", "scheduler")
	admin, bob := s.staff("admin@example.com", "ADMIN"), s.staff("bob@example.com", "OPERATOR")
	tokenID, erp := s.serviceToken(admin, "EVENTS_READ", "ORDERS_READ", "USERS_READ")
	made := s.toAddresses(2)
	for _, u := range made.Users {
		s.saveAddress(u.AccessToken, home)
	}
	buyer := made.Users[0]
	orderID := s.askedBack(buyer.AccessToken, made)
	second := s.paid(made.Users[1].AccessToken, s.bought(made.Users[1].AccessToken, made))
	if p := s.mutate(bob, "voidOrder", "intervention { id }", map[string]any{"orderId": second, "note": "fraud"}); p.why() != "" || p.Intervention == nil {
		t.Fatalf("voidOrder: %s", p.why())
	}
	// Dead letters of an order that is written, as after a message that came twice.
	task, err := id.ParseTask("tsk_" + strings.TrimPrefix(orderID, "ord_"))
	if err != nil {
		t.Fatal(err)
	}
	db, letter := s.database(), uuid.New()
	if err := db.Ent.DeadLetter.Create().SetID(letter).SetStream(s.cfg.RedisPrefix + "{s00}:orders").SetEntry("1-0").
		SetMessageID(task.String()).SetFields([]byte(`[{"n":"cGF5bG9hZA==","v":"e30="}]`)).SetCreatedAt(time.Now()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ent.LetterAct.Create().SetID(uuid.New()).SetLetter(letter.String()).SetKind("REPLAY").SetStream("orders").SetTaskID(task).
		SetReason("poisoned").SetNote("again").SetActorID(id.User{}).SetCreatedAt(time.Now()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	endpoint := s.endpoint()
	for _, statement := range []string{
		`UPDATE webhook_events SET kind = 'order.paid', payload = '{"data":{"recipient":{"name":"Lin"}}}' WHERE subject = 'itm_1'`,
		`UPDATE users SET external_id = 'crm-1' WHERE account = '` + buyer.Account + `'`,
		`INSERT INTO payment_events (id, provider, event_id, payment_id, kind, amount_minor, currency, provider_ref, transaction, reason, state, outcome, tries, try_at, happened_at, created_at)
		SELECT p.id, 'sandbox', 'e1', p.id, 'SUCCEEDED', 100, 'CNY', '', 'tx1', 'another amount', 'HELD', '', 3, now(), now(), now() FROM payments p LIMIT 1`,
	} {
		if _, err := db.SQL.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	names := strings.NewReplacer("$SALE", made.SaleID, "$ORDER", orderID, "$ACCOUNT", buyer.Account, "$LETTER", letter.String(), "$ENDPOINT", endpoint)
	ask := func(token, document string) {
		t.Helper()
		if out := s.ask(token, "{ "+names.Replace(document)+" }", nil); out.code() != "" {
			t.Fatalf("%s: %+v", document, out.Errors)
		}
	}
	want := map[string]int{}
	for _, r := range reads {
		ask(admin, r.ask)
		ask(admin, r.ask) // within the minute
		if entry := names.Replace(r.entry); entry != "" {
			want["admin "+entry]++
		}
	}
	ask(admin, `orders(first: 1, filter: {saleId: "$SALE", search: "20261"}) { edges { node { buyer { account } } } }`)
	want[names.Replace("admin orders(filter: {saleId: $SALE, search: …})")]++ // another search
	ask(erp, `orders { edges { node { recipient { name } } } }`)
	want["erp orders"]++
	ask(bob, `orders { edges { node { id number buyer { id } } } } sale(by: {id: "$SALE"}) { timeline { actor { account } } } viewer { account }`)
	ask(buyer.AccessToken, `myOrders { edges { node { buyer { account } recipient { name } } } } order(by: { id: "$ORDER" }) { buyer { account } } viewer { account }`)

	got, by := map[string]int{}, map[string]string{s.userOf(admin): "admin", s.userOf(bob): "bob", made.Users[0].Account: "buyer"}
	for _, e := range s.securityLog(account.EventListRead) {
		actor := by[e.Actor.Public()]
		if actor == "" && id.ServiceToken(e.Actor).Public() == tokenID {
			actor = "erp"
		}
		got[actor+" "+e.Detail]++
		if e.Addr.String() != "93.184.216.34" {
			t.Errorf("an entry has the address %s", e.Addr)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestTheSecurityLogNamesWhoForgesCallbacks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	post := func(signature string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/webhooks/payments/sandbox", strings.NewReader(`{"id":"x","type":"charge.paid"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(sandbox.SignatureHeader, signature)
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := post("t=1,v1=a-guess"); got != http.StatusUnauthorized {
		t.Fatalf("a forged call-back: %d", got)
	}
	forged := s.securityLog(account.EventWebhookForged)
	if len(forged) != 1 || forged[0].Addr.String() != "127.0.0.1" || forged[0].Detail != "1 at sandbox" {
		t.Errorf("security log: %+v", forged)
	}
}
