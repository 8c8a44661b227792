package system_test

import (
	"slices"
	"testing"
	"time"

	"seckill/internal/app"
	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// challenge creates a proof of work for a purpose in a sale and solves it.
func (s *site) challenge(token, purpose, saleID string) map[string]any {
	s.t.Helper()
	challenge, err := s.client(token).Challenge(s.t.Context(), purpose, saleID)
	if err != nil {
		s.t.Fatalf("createCaptcha for %s: %v", purpose, err)
	}
	return map[string]any{"challengeId": challenge.ID, "answer": solve(s.t, challenge.Parameters)}
}

// asked calls issueSeckillPath or joinWaitlist for an item and returns the code of its refusal.
func (s *site) asked(field, token, itemID string, captcha any) string {
	s.t.Helper()
	kind, given := "IssueSeckillPathInput", "path { token }"
	if field == "joinWaitlist" {
		kind, given = "JoinWaitlistInput", "waitlistEntry { id }"
	}
	out := s.ask(token, `mutation($in: `+kind+`!) { outcome: `+field+`(input: $in) { `+given+` userErrors { code } } }`,
		map[string]any{"in": map[string]any{"itemId": itemID, "captcha": captcha}})
	if code := out.code(); code != "" {
		return code
	}
	var data struct{ Outcome UserErrors }
	out.into(s.t, &data)
	return data.Outcome.why()
}

// A place on the waitlist may lead to a unit as a path token does, so both ask the same of a buyer.
func TestJoinWaitlistAsksWhatIssueSeckillPathAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	sale := func(change string) *seed.Result {
		t.Helper()
		made := s.seed(seed.Input{Users: 1, Stock: 50, PermitRatio: 10})
		if _, err := s.database().SQL.ExecContext(t.Context(), "UPDATE sales SET captcha_required = false"+change+" WHERE id = $1",
			parsed[id.Sale](t, id.KindSale, made.SaleID).UUID()); err != nil {
			t.Fatal(err)
		}
		return made
	}
	contact, age, address := sale(", requires_verified_contact = true"), sale(", minimum_account_age_hours = 48"), sale(", requires_address = true")
	persons, paused, ended, prepared := sale(", limit_by = 'CONTACT'"), sale(""), sale(""), sale("")
	later := s.seed(seed.Input{Users: 1, Stock: 5, OpensIn: time.Hour})
	s.start("api", "worker", "scheduler")
	admin := s.staff("ann@example.com", "ADMIN")
	_, service := s.serviceToken(admin, "SALES_READ")
	account := func(name string) string {
		t.Helper()
		if _, err := app.CreateUser(t.Context(), s.cfg, app.NewUser{Account: name, Role: "CUSTOMER", DisplayName: name, Password: "a long password"}); err != nil {
			t.Fatal(err)
		}
		s.verified(seed.LoadUser{Account: name})
		return s.login(name, "a long password")
	}
	buyer := account("joe@example.com")
	s.onSale(admin, "pauseSale", paused.SaleID, "a moment", "PAUSED")
	s.onSale(admin, "endSale", ended.SaleID, "no more", "ENDED")
	if p := s.mutate(admin, "adjustStock", "intervention { id }", map[string]any{
		"itemId": prepared.ItemID, "units": 1, "note": "one more", "idempotencyKey": "one-more-unit-0001",
	}); p.why() != "" {
		t.Fatal(p.why())
	}
	blocked := account("kim@example.com")
	if p := s.mutate(admin, "disableUser", "user { id }", map[string]any{"userId": s.userOf(blocked), "note": "a script"}); p.why() != "" {
		t.Fatal(p.why())
	}
	// persons: the one has an order, the other an unused path token, the third two expired orders
	bought, holds, late := account("lee@example.com"), account("mia@example.com"), account("nia@example.com")
	s.bought(bought, persons)
	if why := s.asked("issueSeckillPath", holds, persons.ItemID, map[string]any{"challengeId": "none", "answer": "0"}); why != "" {
		t.Fatalf("a path token: %s", why)
	}
	s.letExpire(late, persons, reservation.MaxExpired)
	for name, c := range map[string]struct {
		token, item, want string
	}{
		"no account":                             {"", persons.ItemID, "UNAUTHENTICATED"},
		"a service token":                        {service, persons.ItemID, "FORBIDDEN"},
		"a blocked account":                      {blocked, persons.ItemID, "UNAUTHENTICATED"},
		"an unknown item":                        {buyer, id.New[id.Item]().Public(), "NOT_FOUND"},
		"an id of another kind":                  {buyer, persons.SaleID, "NOT_FOUND"},
		"before the opening":                     {buyer, later.ItemID, "SALE_NOT_STARTED"},
		"a pause":                                {buyer, paused.ItemID, "SALE_PAUSED"},
		"the end":                                {buyer, ended.ItemID, "SALE_CLOSED"},
		"a sale that the user changed":           {admin, prepared.ItemID, "OWN_SALE"},
		"no verified contact":                    {contact.Users[0].AccessToken, contact.ItemID, "CONTACT_UNVERIFIED"},
		"a new account":                          {buyer, age.ItemID, "ACCOUNT_TOO_NEW"},
		"no address":                             {buyer, address.ItemID, "ADDRESS_REQUIRED"},
		"an order":                               {bought, persons.ItemID, "ALREADY_ORDERED"},
		"an order of the person's other account": {account("lee+1@example.com"), persons.ItemID, "PURCHASE_LIMIT_REACHED"},
		"a path token of the person's other account": {account("mia+1@example.com"), persons.ItemID, "PURCHASE_LIMIT_REACHED"},
		"expired orders": {late, persons.ItemID, "RATE_LIMITED"},
		"expired orders of the person's other account": {account("nia+1@example.com"), persons.ItemID, "RATE_LIMITED"},
	} {
		for _, field := range []string{"issueSeckillPath", "joinWaitlist"} {
			if why := s.asked(field, c.token, c.item, map[string]any{"challengeId": "none", "answer": "0"}); why != c.want {
				t.Errorf("%s of %s: %q, want %s", field, name, why, c.want)
			}
		}
	}
}

func TestAPlaceOnTheWaitlistNeedsTheCaptchaThatAPathNeeds(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.PathTTL = time.Minute })
	s.start("api", "worker", "scheduler")
	open := s.seed(seed.Input{Users: 9, Stock: 50, PermitRatio: 10})
	full, elsewhere := s.seed(seed.Input{Users: 11, Stock: 1}), s.seed(seed.Input{Users: 1, Stock: 1})
	stranger, other, last := elsewhere.Users[0].AccessToken, full.Users[9].AccessToken, full.Users[10].AccessToken
	forPath := s.challenge(other, "SECKILL", full.SaleID)
	s.bought(full.Users[0].AccessToken, full)
	s.drained(full.SaleID, 1)
	if why := s.asked("joinWaitlist", other, full.ItemID, forPath); why != "CAPTCHA_INVALID" {
		t.Errorf("joinWaitlist with an answer for a path token: %q, want CAPTCHA_INVALID", why)
	}
	if why := s.asked("issueSeckillPath", other, open.ItemID, s.challenge(other, "WAITLIST", open.SaleID)); why != "CAPTCHA_INVALID" {
		t.Errorf("issueSeckillPath with an answer for the waitlist: %q, want CAPTCHA_INVALID", why)
	}
	for _, way := range []struct {
		field, purpose string
		made           *seed.Result
	}{
		{"issueSeckillPath", "SECKILL", open},
		{"joinWaitlist", "WAITLIST", full},
	} {
		user := 0
		for name, c := range map[string]struct {
			answers func(token string) []any
			want    []string
		}{
			"right, then once more": {func(token string) []any {
				right := s.challenge(token, way.purpose, way.made.SaleID)
				return []any{right, right}
			}, []string{"", "CAPTCHA_INVALID"}},
			"of nothing": {func(string) []any {
				return []any{map[string]any{"challengeId": "cap_none", "answer": "0"}}
			}, []string{"CAPTCHA_INVALID"}},
			"of another user": {func(string) []any {
				return []any{s.challenge(stranger, way.purpose, way.made.SaleID)}
			}, []string{"CAPTCHA_INVALID"}},
			"of another sale": {func(token string) []any {
				return []any{s.challenge(token, way.purpose, elsewhere.SaleID)}
			}, []string{"CAPTCHA_INVALID"}},
			"wrong twice, then right": {func(token string) []any {
				right := s.challenge(token, way.purpose, way.made.SaleID)
				wrong := map[string]any{"challengeId": right["challengeId"], "answer": "no such answer"}
				return []any{wrong, wrong, right}
			}, []string{"CAPTCHA_INVALID", "CAPTCHA_INVALID", ""}},
			"wrong three times, then right": {func(token string) []any {
				right := s.challenge(token, way.purpose, way.made.SaleID)
				wrong := map[string]any{"challengeId": right["challengeId"], "answer": "no such answer"}
				return []any{wrong, wrong, wrong, right}
			}, []string{"CAPTCHA_INVALID", "CAPTCHA_INVALID", "CAPTCHA_INVALID", "CAPTCHA_INVALID"}},
			"voided by the answer to a newer one": {func(token string) []any {
				first, second := s.challenge(token, way.purpose, way.made.SaleID), s.challenge(token, way.purpose, way.made.SaleID)
				wrong := map[string]any{"challengeId": second["challengeId"], "answer": "no such answer"}
				return []any{wrong, first, second}
			}, []string{"CAPTCHA_INVALID", "CAPTCHA_INVALID", ""}},
		} {
			user++ // the first has the unit
			token := way.made.Users[user].AccessToken
			var got []string
			for _, answer := range c.answers(token) {
				got = append(got, s.asked(way.field, token, way.made.ItemID, answer))
				if way.field == "joinWaitlist" && got[len(got)-1] == "" {
					place, why := s.join(token, way.made.ItemID)
					if why != "" {
						t.Errorf("joining again without a captcha: %s", why)
					} else if _, why = s.leave(token, place.ID); why != "" {
						t.Errorf("leave: %s", why)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s with an answer %s: %q, want %q", way.field, name, got, c.want)
			}
		}
	}
	if why := s.asked("joinWaitlist", last, full.ItemID, nil); why != "CAPTCHA_REQUIRED" {
		t.Errorf("joinWaitlist without an answer: %q, want CAPTCHA_REQUIRED", why)
	}
	s.joined(last, full.ItemID) // by the challenge of that refusal
	operator := s.staff("ann@example.com", "OPERATOR")
	if p := s.byTwo(operator, "setSaleSwitches", saleParts, map[string]any{"saleId": full.SaleID, "captchaRequired": false}); p.why() != "" {
		t.Fatal(p.why())
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		return s.asked("joinWaitlist", other, full.ItemID, nil) == ""
	}, "no captcha is required any more")
}

// A captcha whose answer would bring nothing is refused as the operation would be that it is for.
func TestCreateCaptchaIsRefusedWhereItsAnswerBringsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	sale := func() *seed.Result { t.Helper(); return s.seed(seed.Input{Users: 1, Stock: 5}) }
	cancelled := sale()
	if _, err := s.database().SQL.ExecContext(t.Context(), "UPDATE sales SET status = 'CANCELLED', was_public = true WHERE id = $1",
		parsed[id.Sale](t, id.KindSale, cancelled.SaleID).UUID()); err != nil {
		t.Fatal(err)
	}
	s.start("api", "worker", "scheduler")
	admin := s.staff("ann@example.com", "ADMIN")
	live, paused, ended := sale(), sale(), sale()
	later := s.seed(seed.Input{Users: 1, Stock: 5, OpensIn: time.Hour})
	unpaid, _ := s.soldOut(seed.Input{Users: 1})
	gone, task := s.soldOut(seed.Input{Users: 1})
	s.paid(gone.Users[0].AccessToken, task)
	s.onSale(admin, "pauseSale", paused.SaleID, "a moment", "PAUSED")
	s.onSale(admin, "endSale", ended.SaleID, "no more", "ENDED")
	buyer := live.Users[0].AccessToken
	for name, c := range map[string]struct {
		made              *seed.Result
		seckill, waitlist string
	}{
		"live":              {live, "", ""},
		"not open yet":      {later, "", "SALE_NOT_STARTED"},
		"paused":            {paused, "SALE_PAUSED", "SALE_PAUSED"},
		"ended early":       {ended, "SALE_CLOSED", "SALE_CLOSED"},
		"cancelled":         {cancelled, "SALE_CLOSED", "SALE_CLOSED"},
		"sold out for now":  {unpaid, "SOLD_OUT", ""},
		"sold out for good": {gone, "SOLD_OUT", "SOLD_OUT"},
	} {
		for _, way := range []struct{ field, purpose, want string }{{"issueSeckillPath", "SECKILL", c.seckill}, {"joinWaitlist", "WAITLIST", c.waitlist}} {
			var got string
			var given bool
			testenv.Eventually(t, testenv.Wait, func() bool { // the catalogue and the view of gates may be a second old
				var data struct {
					CreateCaptcha struct {
						Challenge *struct{ ID string }
						UserErrors
					}
				}
				s.ask(buyer, `mutation($in: CreateCaptchaInput!) { createCaptcha(input: $in) { challenge { id } userErrors { code } } }`,
					map[string]any{"in": map[string]any{"purpose": way.purpose, "saleId": c.made.SaleID, "kind": "PROOF_OF_WORK"}}).into(t, &data)
				got, given = data.CreateCaptcha.why(), data.CreateCaptcha.Challenge != nil
				return got == way.want
			}, name+": a captcha for "+way.purpose+" is answered \""+way.want+"\"")
			if given != (way.want == "") {
				t.Errorf("%s: a challenge for %s: %t", name, way.purpose, given)
			}
			if why := s.asked(way.field, buyer, c.made.ItemID, map[string]any{"challengeId": "none", "answer": "0"}); way.want != "" && why != way.want {
				t.Errorf("%s: %s is refused with %q, its captcha with %q", name, way.field, why, way.want)
			}
		}
	}
}
