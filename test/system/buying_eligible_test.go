package system_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// requires seeds a sale whose requirements set writes, and starts the processes.
func (s *site) requires(set func(*ent.SaleUpdateOne)) *seed.Result {
	s.t.Helper()
	made := s.seed(seed.Input{Users: 1, Stock: 5, PermitRatio: 10})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		s.t.Fatal(err)
	}
	update := s.database().Ent.Sale.UpdateOneID(saleID)
	set(update)
	if err := update.Exec(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.start("api", "worker", "scheduler")
	return made
}

// lacks returns what a buyer lacks for a sale: needsVerifiedContact, accountTooNew.
func (s *site) lacks(token, saleID string) (contact, age bool) {
	s.t.Helper()
	var data struct {
		Sale struct {
			Viewer struct{ NeedsVerifiedContact, AccountTooNew bool }
		}
	}
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { viewer { needsVerifiedContact accountTooNew } } }`, map[string]any{"id": saleID}).into(s.t, &data)
	return data.Sale.Viewer.NeedsVerifiedContact, data.Sale.Viewer.AccountTooNew
}

// refusedBefore reports the code with which a buyer is refused before a path is issued.
func (s *site) refusedBefore(token string, made *seed.Result, want string) {
	s.t.Helper()
	for _, field := range []string{"issueSeckillPath", "enterQueue"} {
		if path, ticket, why := s.knock(field, token, made); why != want || path != "" || ticket != nil {
			s.t.Errorf("%s: %q, path %q, %+v, want %s", field, why, path, ticket, want)
		}
	}
	if p := s.mutate(token, "joinWaitlist", "waitlistEntry { id }", map[string]any{"itemId": made.ItemID}); p.why() != want {
		s.t.Errorf("joinWaitlist: %q, want %s", p.why(), want)
	}
}

func TestASaleMayRequireAVerifiedContact(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.requires(func(u *ent.SaleUpdateOne) { u.SetRequiresVerifiedContact(true) })
	buyer := s.login(made.Users[0].Account, made.Users[0].Password)
	s.refusedBefore(buyer, made, "CONTACT_UNVERIFIED")
	if contact, age := s.lacks(buyer, made.SaleID); !contact || age {
		t.Errorf("the buyer lacks contact %t, age %t", contact, age)
	}
	user, err := id.ParseUser(s.userOf(buyer))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.database().Ent.User.UpdateOneID(user).SetVerifiedAt(time.Now()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := s.staff("carla@example.com", "ADMIN") // a change by the API makes all processes read the user again
	if p := s.mutate(admin, "setUserExternalId", "user { id }", map[string]any{"userId": s.userOf(buyer), "externalId": "c-1"}); p.why() != "" {
		t.Fatal(p.why())
	}
	testenv.Eventually(t, testenv.Wait, func() bool { contact, _ := s.lacks(buyer, made.SaleID); return !contact }, "the contact is verified")
	s.buysOne(buyer, made)
}

// The age counts at the opening, and the operator's form sets both.
func TestASaleMayRequireAnOlderAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.requires(func(u *ent.SaleUpdateOne) { u.SetMinimumAccountAgeHours(48) })
	buyer := s.login(made.Users[0].Account, made.Users[0].Password)
	s.refusedBefore(buyer, made, "ACCOUNT_TOO_NEW")
	if contact, age := s.lacks(buyer, made.SaleID); contact || !age {
		t.Errorf("the buyer lacks contact %t, age %t", contact, age)
	}
	operator := s.staff("ann@example.com", "OPERATOR")
	saleID := s.draft(operator)
	var data struct {
		UpdateSale struct {
			Sale struct {
				RequireVerifiedContact bool
				MinimumAccountAge      int
			}
			UserErrors
		}
	}
	s.ask(operator, `mutation($in: UpdateSaleInput!) { updateSale(input: $in) { sale { requireVerifiedContact minimumAccountAge } userErrors { code } } }`,
		map[string]any{"in": map[string]any{"saleId": saleID, "requireVerifiedContact": true, "minimumAccountAge": 72}}).into(t, &data)
	if v := data.UpdateSale.Sale; !v.RequireVerifiedContact || v.MinimumAccountAge != 72 {
		t.Errorf("changed to %+v %s", v, data.UpdateSale.why())
	}
}

func TestErrorsLinkToTheirCauseAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Profile, c.PublicURL = config.ProfileProduction, "https://shop.example.com" })
	s.start("api", "worker", "scheduler")
	get := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := get(http.MethodGet, "/errors", "")
	for body, code := range map[string]string{
		`{"query":"{ orders { totalCount } }"}`:              "UNAUTHENTICATED",
		`{"query":"{ nothing }"}`:                            "GRAPHQL_VALIDATION_FAILED",
		`{"query":"{"}`:                                      "GRAPHQL_PARSE_FAILED",
		`{"query":"query($i: ID!) { node(id: $i) { id } }"}`: "BAD_USER_INPUT",
		`not json`: "BAD_USER_INPUT",
		`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`: "PERSISTED_QUERY_NOT_SUPPORTED",
	} {
		if answer := get(http.MethodPost, "/graphql", body); !strings.Contains(answer, `"documentation":"https://shop.example.com/errors#`+code+`"`) {
			t.Errorf("%s: %s", body, answer)
		}
		if !strings.Contains(page, `id="`+code+`"`) {
			t.Errorf("/errors has no %s", code)
		}
	}
	var data struct {
		ServerInfo struct{ ErrorReference string }
	}
	s.ask("", `{ serverInfo { errorReference } }`, nil).into(t, &data)
	if data.ServerInfo.ErrorReference != "https://shop.example.com/errors" || !strings.Contains(page, `id="SOLD_OUT"`) {
		t.Errorf("the reference is %q: %.200s", data.ServerInfo.ErrorReference, page)
	}
}
