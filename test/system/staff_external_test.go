package system_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"seckill/internal/identity/account"
	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// metadata reads the metadata of an order; ok is false when the answer has none.
func (s *site) metadata(token, orderID string) (entries map[string]string, code string) {
	s.t.Helper()
	var data struct {
		Order struct{ Metadata []struct{ Key, Value string } }
	}
	out := s.ask(token, `query($id: ID!) { order(by: { id: $id }) { metadata { key value } } }`, map[string]any{"id": orderID})
	out.into(s.t, &data)
	entries = map[string]string{}
	for i, e := range data.Order.Metadata {
		if i > 0 && data.Order.Metadata[i-1].Key >= e.Key {
			s.t.Errorf("the keys are not in order: %+v", data.Order.Metadata)
		}
		entries[e.Key] = e.Value
	}
	return entries, out.code()
}

func (s *site) setMetadata(token, orderID string, pairs ...string) (revision any, why string) {
	s.t.Helper()
	entries := []map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, map[string]any{"key": pairs[i], "value": pairs[i+1]})
	}
	p := s.mutate(token, "setOrderMetadata", "order { revision }", map[string]any{"orderId": orderID, "entries": entries})
	return p.Order["revision"], p.why()
}

func TestOtherSystemsStoreTextsWithAnOrderThatTheBuyerDoesNotSee(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	_, erp := s.serviceToken(s.staff("admin@example.com", "ADMIN"), "ORDERS_WRITE", "EVENTS_READ")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PermitRatio: 10})
	buyer := made.Users[0].AccessToken
	orderID := s.buysOne(buyer, made)
	first, why := s.setMetadata(erp, orderID, "erp.id", "4711", "note", "for Ann")
	again, _ := s.setMetadata(erp, orderID, "erp.id", "4711")
	if why != "" || first != again {
		t.Errorf("stored: %q, revisions %v and %v", why, first, again)
	}
	if _, why := s.setMetadata(erp, orderID, "note", "", "crm:id", "客户 7"); why != "" {
		t.Errorf("removed and added: %q", why)
	}
	if got, code := s.metadata(erp, orderID); fmt.Sprint(got) != "map[crm:id:客户 7 erp.id:4711]" {
		t.Errorf("the order has %v %s", got, code)
	}
	if got, code := s.metadata(buyer, orderID); len(got) != 0 || code != "FORBIDDEN" {
		t.Errorf("the buyer reads %v %s", got, code)
	}
	if row := s.exported(s.staff("operator@example.com", "OPERATOR"), made.SaleID); row["metadata"] != `{"crm:id":"客户 7","erp.id":"4711"}` {
		t.Errorf("the export has %v", row)
	}
	many := []string{}
	for i := range 19 {
		many = append(many, fmt.Sprintf("k%d", i), "v")
	}
	for name, pairs := range map[string][]string{
		"nothing": {}, "a key with a space": {"a b", "v"}, "a key twice": {"a", "1", "a", "2"}, "21 entries": many,
	} {
		if _, why := s.setMetadata(erp, orderID, pairs...); why != "INVALID_INPUT" {
			t.Errorf("%s: %q", name, why)
		}
	}
	if _, why := s.setMetadata(erp, strings.Replace(orderID, "ord_0", "ord_1", 1), "a", "b"); why != "NOT_FOUND" {
		t.Errorf("an unknown order: %q", why)
	}
	if got, _ := s.metadata(erp, orderID); len(got) != 2 {
		t.Errorf("a refused call changed the order: %v", got)
	}
	if p := s.mutate(buyer, "cancelOrder", "order { status }", map[string]any{"orderId": orderID}); p.why() != "" {
		t.Fatal(p.why())
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		out := s.ask(erp, `{ events(first: 50, kinds: [ORDER_CANCELLED]) { edges { node { payload } } } }`, nil)
		return strings.Contains(string(out.Data), `\"metadata\":{\"crm:id\":\"客户 7\",\"erp.id\":\"4711\"}`)
	}, "the next event has the metadata")
}

func TestConcurrentCallsDoNotLoseEachOthersMetadata(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	_, erp := s.serviceToken(s.staff("admin@example.com", "ADMIN"), "ORDERS_WRITE")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PermitRatio: 10})
	orderID := s.buysOne(made.Users[0].AccessToken, made)
	const calls = 6
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			in := map[string]any{"orderId": orderID, "entries": []map[string]any{{"key": fmt.Sprintf("system.%d", i), "value": "x"}}}
			out, err := s.try(erp, `mutation($in: SetOrderMetadataInput!) { setOrderMetadata(input: $in) { userErrors { code } } }`, map[string]any{"in": in})
			if err != nil || out.code() != "" {
				t.Errorf("call %d: %s %v", i, out.code(), err)
			}
		})
	}
	all.Wait()
	if got, _ := s.metadata(erp, orderID); len(got) != calls {
		t.Errorf("%d calls left %v", calls, got)
	}
}

func TestAUserHasOneIdOfAnotherSystemThatNoOtherUserHas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	admin := s.staff("admin@example.com", "ADMIN")
	_, crm := s.serviceToken(admin, "USERS_WRITE")
	_, erp := s.serviceToken(admin, "ORDERS_READ")
	made := s.seed(seed.Input{Users: 2, Stock: 1})
	viewerID := func(token string) string {
		var data struct{ Viewer struct{ ID string } }
		s.ask(token, `{ viewer { id } }`, nil).into(t, &data)
		return data.Viewer.ID
	}
	first, second := viewerID(made.Users[0].AccessToken), viewerID(made.Users[1].AccessToken)
	set := func(token, userID string, externalID any) string {
		return s.mutate(token, "setUserExternalId", "user { id externalId }", map[string]any{"userId": userID, "externalId": externalID}).why()
	}
	for _, step := range []struct {
		name, user string
		external   any
		want       string
	}{
		{"the first id", first, "customer-7", ""},
		{"the same again", first, "customer-7", ""},
		{"another id", first, "customer-8", "CONFLICT"},
		{"the id of another user", second, "customer-7", "CONFLICT"},
		{"a space", second, "customer 8", "INVALID_INPUT"},
		{"an unknown user", strings.Replace(first, "usr_0", "usr_1", 1), "customer-9", "NOT_FOUND"},
	} {
		if why := set(crm, step.user, step.external); why != step.want {
			t.Errorf("%s: %q, want %q", step.name, why, step.want)
		}
	}
	externalID := func(token, query string) string {
		var data struct {
			User *struct{ ID, ExternalID string }
		}
		s.ask(token, query, nil).into(t, &data)
		if data.User == nil {
			return "no user"
		}
		return data.User.ID + " " + data.User.ExternalID
	}
	byID := `{ user: node(id: "` + first + `") { ... on User { id externalId } } }`
	for name, token := range map[string]string{"the user": made.Users[0].AccessToken, "a token that reads orders": erp, "a token that reads users": crm} {
		if got := externalID(token, byID); got != first+" customer-7" {
			t.Errorf("%s reads %q", name, got)
		}
	}
	if got := externalID(made.Users[1].AccessToken, byID); got != "no user" {
		t.Errorf("another user reads %q", got)
	}
	if got := externalID(crm, `{ user: userByExternalId(externalId: "customer-7") { id externalId } }`); got != first+" customer-7" {
		t.Errorf("found %q", got)
	}
	if out := s.ask(erp, `{ userByExternalId(externalId: "customer-7") { id } }`, nil); out.code() != "FORBIDDEN" {
		t.Errorf("a token without the scope finds: %s", out.code())
	}
	if why := set(crm, first, nil); why != "" || set(crm, second, "customer-7") != "" {
		t.Errorf("the id moves to another user: %q", why)
	}
	out := s.ask(crm, `mutation($in: SetUserExternalIdInput!) { setUserExternalId(input: $in) { user { id } } }`,
		map[string]any{"in": map[string]any{"userId": s.userOf(admin), "externalId": "customer-1"}})
	if out.code() != "FORBIDDEN" {
		t.Errorf("an administrator gets the id of a customer: %s %s", out.code(), out.Data)
	}
	if events := s.securityLog(account.EventExternalID); len(events) != 3 {
		t.Errorf("the security log has %+v", events)
	}
}
