package system_test

import (
	"slices"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/buy/access"
	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// membersFirst are the members of a list, and an hour later everyone.
var membersFirst = access.Rules{{Kind: access.List, Name: "Members", Source: "vip"}, {Kind: access.All, After: 3600}}

// rule gives a sale access rules, which the processes read.
func (s *site) rule(made *seed.Result, rules access.Rules) {
	s.t.Helper()
	saleID, err := id.ParseSale(made.SaleID)
	if err == nil {
		_, err = s.database().SQL.ExecContext(s.t.Context(), "UPDATE sales SET access = $1, revision = revision + 1 WHERE id = $2", rules.JSON(), saleID)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// ruled seeds a sale with access rules, which opens after a time, and starts the processes.
func (s *site) ruled(rules access.Rules, opensIn time.Duration) *seed.Result {
	s.t.Helper()
	made := s.seed(seed.Input{Users: 3, Stock: 5, PermitRatio: 10, OpensIn: opensIn})
	s.rule(made, rules)
	s.start("api", "worker", "scheduler")
	return made
}

// changeMembers changes the list vip by accounts and returns the lines of the rows without one.
func (s *site) changeMembers(token, mode string, users ...string) (lines []int) {
	s.t.Helper()
	var data struct {
		ChangeAccessMembers struct {
			List     *struct{ Members int }
			Problems []struct{ Line int }
			UserErrors
		}
	}
	s.ask(token, `mutation($in: ChangeAccessMembersInput!) { changeAccessMembers(input: $in) { list { name members } rows problems { line reason } userErrors { code path } } }`,
		map[string]any{"in": map[string]any{"list": "vip", "mode": mode, "by": "ACCOUNT", "rows": users}}).into(s.t, &data)
	if data.ChangeAccessMembers.why() != "" || data.ChangeAccessMembers.List == nil {
		s.t.Fatalf("changeAccessMembers: %+v", data)
	}
	for _, p := range data.ChangeAccessMembers.Problems {
		lines = append(lines, p.Line)
	}
	return lines
}

type viewedAccess struct {
	Action         string
	DisabledReason *string
	Access         *struct {
		From *time.Time
		Open bool
		Rule *struct{ Kind, Name string }
	}
}

// accessOf returns what a buyer sees of the access to a sale.
func (s *site) accessOf(token, saleID string) viewedAccess {
	s.t.Helper()
	var data struct{ Sale struct{ Viewer viewedAccess } }
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { access { kind name afterSeconds from } viewer { action disabledReason access { from open rule { kind name } } } } }`,
		map[string]any{"id": saleID}).into(s.t, &data)
	return data.Sale.Viewer
}

// refusedCaptcha returns why a buyer gets no captcha, from when, and the names of the rules.
func (s *site) refusedCaptcha(token, saleID string) (code string, from *time.Time, rules string) {
	s.t.Helper()
	var data struct {
		CreateCaptcha struct {
			UserErrors []struct {
				Code   string
				From   *time.Time
				Access []struct{ Kind, Name string }
			}
		}
	}
	s.ask(token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { userErrors { code ... on NoAccessError { from access { kind name } } } } }`,
		map[string]any{"s": saleID}).into(s.t, &data)
	if len(data.CreateCaptcha.UserErrors) == 0 {
		return "", nil, ""
	}
	e := data.CreateCaptcha.UserErrors[0]
	for _, r := range e.Access {
		rules += r.Kind + " " + r.Name + ";"
	}
	return e.Code, e.From, rules
}

func TestMembersBuyFirstAndEveryoneLater(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.ruled(membersFirst, 0)
	member, stranger, former := made.Users[0].AccessToken, made.Users[1].AccessToken, made.Users[2].AccessToken
	_, crm := s.serviceToken(s.staff("carla@example.com", "ADMIN"), "USERS_WRITE")
	if lines := s.changeMembers(crm, "REPLACE", s.userOf(member), "usr_nobody", s.userOf(former)); !slices.Equal(lines, []int{2}) {
		t.Errorf("problems at lines %v", lines)
	}
	s.refusedBefore(stranger, made, "NO_ACCESS")
	code, from, rules := s.refusedCaptcha(stranger, made.SaleID)
	if code != "NO_ACCESS" || from == nil || time.Until(*from) < 30*time.Minute || rules != "LIST Members;ALL ;" {
		t.Errorf("the captcha is refused with %s from %v by %s", code, from, rules)
	}
	if v := s.accessOf(stranger, made.SaleID); v.Action != "WAIT" || v.Access == nil || v.Access.Open || v.Access.Rule.Kind != "ALL" || !v.Access.From.Equal(*from) {
		t.Errorf("others see %+v", v)
	}
	if v := s.accessOf(member, made.SaleID); v.Action != "BUY" || !v.Access.Open || v.Access.Rule.Name != "Members" {
		t.Errorf("a member sees %+v", v)
	}
	s.buysOne(member, made)
	s.changeMembers(crm, "REMOVE", s.userOf(former))
	s.refusedBefore(former, made, "NO_ACCESS")
	s.drained(made.SaleID, 1)
}

// A unit that is kept for members is sold out to others, whose waitlist does not get it, until its time.
// Then it is theirs, without a change of the gate.
func TestKeptUnitsAreForMembersUntilTheirTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.seed(seed.Input{Users: 4, Stock: 2, PermitRatio: 10})
	keep := func(until int) {
		rules := access.Rules{{Kind: access.List, Name: "Members", Source: "vip", Keep: 1, Until: until}, {Kind: access.All}}
		s.rule(made, rules)
		item, err := id.ParseItem(made.ItemID)
		if err != nil {
			t.Fatal(err)
		}
		saleID, err := id.ParseSale(made.SaleID)
		if err == nil {
			err = s.conn().Cmd.Del(t.Context(), reservation.Keys{Prefix: s.cfg.RedisPrefix}.Item(id.ShardOf(saleID), item)).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep(3600)
	s.start("api", "worker", "scheduler")
	member, first, second, third := made.Users[0].AccessToken, made.Users[1].AccessToken, made.Users[2].AccessToken, made.Users[3].AccessToken
	s.changeMembers(s.staff("ann@example.com", "OPERATOR"), "ADD", s.userOf(member))
	s.bought(first, made)
	testenv.Eventually(t, testenv.Wait, func() bool { return s.accessOf(second, made.SaleID).Action == "JOIN_WAITLIST" }, "sold out to others")
	if _, why := s.press(second, made); why != "SOLD_OUT" {
		t.Errorf("the kept unit for others: %q", why)
	}
	if v := s.accessOf(member, made.SaleID); v.Action != "BUY" {
		t.Errorf("a member sees %+v", v)
	}
	entry := s.joined(second, made.ItemID)
	if p, why := s.press(member, made); why != "" {
		t.Errorf("the kept unit for a member while others wait: %+v %s", p, why)
	} else {
		testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(member, p.OrderTask.ID) == "SUCCEEDED" }, "the order")
		s.audit(made.SaleID)
		s.cancel(member, p.OrderTask.ID)
	}
	if e := s.button(second, made.SaleID).Viewer.WaitlistEntry; e == nil || e.ID != entry.ID || e.Status != "WAITING" {
		t.Errorf("the waitlist of others: %+v", e)
	}
	s.mutate(second, "leaveWaitlist", "", map[string]any{"waitlistEntryId": entry.ID})
	keep(1) // long over: the gate is built from the record, with the same units
	s.bought(third, made)
	s.drained(made.SaleID, 2)
}

// In a sale for members alone others have no time to wait for.
func TestASaleForMembersAloneHasNoTimeForOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.ruled(membersFirst[:1], 0)
	stranger := made.Users[1].AccessToken
	s.refusedBefore(stranger, made, "NO_ACCESS")
	if code, from, _ := s.refusedCaptcha(stranger, made.SaleID); code != "NO_ACCESS" || from != nil {
		t.Errorf("the captcha is refused with %s from %v", code, from)
	}
	if v := s.accessOf(stranger, made.SaleID); v.Action != "NONE" || v.DisabledReason == nil || v.Access.Rule != nil || v.Access.From != nil {
		t.Errorf("others see %+v", v)
	}
}

// The waiting room before the opening takes those whose time the opening is.
func TestTheWaitingRoomTakesThoseWhoseTimeItIs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.ruled(membersFirst, time.Hour)
	member, stranger := made.Users[0].AccessToken, made.Users[1].AccessToken
	s.changeMembers(s.staff("ann@example.com", "OPERATOR"), "ADD", s.userOf(member))
	if _, ticket, why := s.knock("enterQueue", stranger, made); why != "NO_ACCESS" || ticket != nil {
		t.Errorf("others: %+v %s", ticket, why)
	}
	if _, ticket, why := s.knock("enterQueue", member, made); ticket == nil {
		t.Errorf("a member: %s", why)
	}
}

// An offer of the waitlist does not outlive the membership.
func TestAnOfferIsForWhoHasAccess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.seed(seed.Input{Users: 2, Stock: 1, PermitRatio: 10})
	s.rule(made, membersFirst)
	s.start("api", "worker", "scheduler")
	operator := s.staff("ann@example.com", "OPERATOR")
	first, second := made.Users[0].AccessToken, made.Users[1].AccessToken
	s.changeMembers(operator, "ADD", s.userOf(first), s.userOf(second))
	task := s.bought(first, made)
	entry := s.joined(second, made.ItemID)
	s.cancel(first, task)
	testenv.Eventually(t, patience, func() bool {
		e := s.button(second, made.SaleID).Viewer.WaitlistEntry
		return e != nil && e.Status == "OFFERED"
	}, "the offer")
	s.changeMembers(operator, "REMOVE", s.userOf(second))
	p, err := s.place(second, order(made.ItemID, entry.ID))
	if err != nil || p.OrderTask != nil || p.why() != "NO_ACCESS" {
		t.Errorf("redeemed by a former member: %+v %v", p, err)
	}
	s.changeMembers(operator, "ADD", s.userOf(second))
	if p, err = s.place(second, order(made.ItemID, entry.ID)); err != nil || p.OrderTask == nil {
		t.Errorf("redeemed by a member: %+v %v", p, err)
	}
}

// A claim that the settings of the provider name is kept with the account, and gives access.
func TestAClaimOfTheProviderGivesAccess(t *testing.T) {
	t.Parallel()
	p := newProvider(t, `, "claims": ["preferred_username", "tier"]`)
	s := p.site
	made := s.seed(seed.Input{Users: 1, Stock: 5, PermitRatio: 10})
	s.rule(made, access.Rules{{Kind: access.Claim, Name: "Staff", Source: "preferred_username=test-user@localhost"}})
	b := browser(t)
	p.signIn(t, b)
	testenv.Eventually(t, testenv.Wait, func() bool { return s.accessOf(made.Users[0].AccessToken, made.SaleID).Access != nil }, "the rules are read")
	if v := s.accessOf(cookieToken(t, s, b), made.SaleID); v.Access == nil || !v.Access.Open {
		t.Errorf("with the claim %+v", v)
	}
	if v := s.accessOf(made.Users[0].AccessToken, made.SaleID); v.Access == nil || v.Access.Open {
		t.Errorf("without it %+v", v)
	}
	var row *ent.User
	user, _, _ := p.session(t, b)
	userID, err := id.ParseUser(user)
	if err == nil {
		row, err = s.database().Ent.User.Get(t.Context(), userID)
	}
	if err != nil || row.Claims != `{"preferred_username":["test-user@localhost"]}` {
		t.Errorf("kept are %+v %v", row, err)
	}
}
