package system_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

func TestTheInstallationSetsThePaymentWindowAndRateLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) {
		c.Limits, c.PaymentWindow = config.SwitchOn, 20*time.Minute
		c.RateLimits = []config.RateLimit{{Operation: "createCaptcha", Burst: 2, PerSecond: 0.001}}
	})
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	saleID := s.draft(ann)
	s.awaitSaleFor(ann, saleID)
	var data struct {
		Sale struct{ PaymentWindowSeconds int }
	}
	s.ask(ann, `query($i: ID!) { sale(by: {id: $i}) { paymentWindowSeconds } }`, map[string]any{"i": saleID}).into(t, &data)
	if data.Sale.PaymentWindowSeconds != 1200 {
		t.Errorf("the sale has a payment window of %d s, want 1200", data.Sale.PaymentWindowSeconds)
	}
	var codes []string
	for range 3 {
		codes = append(codes, s.mutate(ann, "createCaptcha", "challenge { id }", map[string]any{"purpose": "REGISTER"}).why())
	}
	if got := strings.Join(codes, " "); got != "  RATE_LIMITED" {
		t.Errorf("codes %q, want two calls answered and the third refused", got)
	}
}

func TestARateLimitOfAnUnknownOperationFailsTheStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) {
		c.RateLimits = []config.RateLimit{{Operation: "logon", Burst: 2, PerSecond: 1}}
	})
	_, err := app.Open(t.Context(), s.cfg, []string{"api"}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), `SECKILL_RATE_LIMITS: "logon" has no rate limit: choose among`) {
		t.Errorf("open: %v", err)
	}
}

func TestPhoneNumbersWithoutCountryCodeAreOfTheInstallation(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.PhoneCountry = "CN" })
	s.start("api", "worker", "scheduler")
	s.staff("138 0013 8000", "CUSTOMER")
	token := s.login("+8613800138000", "a long password")
	var data struct{ Viewer struct{ Account string } }
	s.ask(token, `{ viewer { account } }`, nil).into(t, &data)
	if data.Viewer.Account != "+8613800138000" {
		t.Errorf("the account is %q", data.Viewer.Account)
	}
	wantFaults(t, s.faults("", "register", map[string]any{
		"account": "1380", "password": "a long password", "displayName": "Li Lei", "captcha": map[string]any{"challengeId": "x", "answer": "1"},
	}), map[string]string{"account": "Account: must be an e-mail address or a phone number."})
}

// awaitSaleFor is awaitSale for a sale that only its role may see.
func (s *site) awaitSaleFor(token, saleID string) {
	s.t.Helper()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		var data struct{ Sale *struct{ ID string } }
		s.ask(token, `query($i: ID!) { sale(by: {id: $i}) { id } }`, map[string]any{"i": saleID}).into(s.t, &data)
		return data.Sale != nil
	}, "the process knows sale "+saleID)
}

// closedAnswer is a SaleNotOpenError.
type closedAnswer struct {
	Code, Phase string
	StartsAt    *time.Time
}

// closed calls a mutation that is refused because the sale is not open.
func (s *site) closed(token, field string, input map[string]any) closedAnswer {
	s.t.Helper()
	name := strings.ToUpper(field[:1]) + field[1:] + "Input!"
	out := s.ask(token, "mutation M($in: "+name+") { payload: "+field+"(input: $in) { userErrors { code ... on SaleNotOpenError { phase startsAt } } } }",
		map[string]any{"in": input})
	var data struct {
		Payload struct{ UserErrors []closedAnswer }
	}
	out.into(s.t, &data)
	if len(data.Payload.UserErrors) != 1 {
		s.t.Fatalf("%s: %s %+v", field, out.Data, out.Errors)
	}
	return data.Payload.UserErrors[0]
}

func TestARefusalBeforePreloadCarriesTheOpening(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.LoadSlot, c.LoadSlots = time.Minute, 1 })
	s.start("api", "worker", "scheduler")
	ann, admin := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN")
	saleID := s.draft(ann)
	s.onSale(ann, "submitSale", saleID, "", "PENDING_APPROVAL")
	s.onSale(admin, "approveSale", saleID, "fine", "APPROVED")
	v := s.onSale(ann, "scheduleSale", saleID, "", "SCHEDULED")
	buyer := s.staff("buyer@example.com", "CUSTOMER")
	itemID := v["items"].([]any)[0].(map[string]any)["id"].(string)
	s.awaitSale(saleID)
	var data struct{ Sale struct{ StartsAt time.Time } }
	s.ask(ann, `query($i: ID!) { sale(by: {id: $i}) { startsAt } }`, map[string]any{"i": saleID}).into(t, &data)
	for field, input := range map[string]map[string]any{
		"placeOrder": order(itemID, "AAAAAAAAAAAAAAAAAAAAAA"), "joinWaitlist": {"itemId": itemID},
	} {
		got := s.closed(buyer, field, input)
		if got.Code != "SALE_NOT_STARTED" || got.StartsAt == nil || !got.StartsAt.Equal(data.Sale.StartsAt) {
			t.Errorf("%s: %+v, want the start %s", field, got, data.Sale.StartsAt)
		}
	}
}

func TestARefusalDuringAPauseCarriesNoStartInThePast(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 5, PathTTL: 10 * time.Minute})
	u := made.Users[0]
	challenge, right := s.captcha(u.AccessToken, made.SaleID)
	s.onSale(ann, "pauseSale", made.SaleID, "a moment", "PAUSED")
	answer := map[string]any{"challengeId": challenge, "answer": right}
	for field, input := range map[string]map[string]any{
		"placeOrder": order(made.ItemID, u.Path), "issueSeckillPath": {"itemId": made.ItemID, "captcha": answer},
		"enterQueue": {"itemId": made.ItemID, "captcha": answer}, "joinWaitlist": {"itemId": made.ItemID},
	} {
		if got := s.closed(u.AccessToken, field, input); got.Code != "SALE_PAUSED" || got.Phase != "PAUSED" || got.StartsAt != nil {
			t.Errorf("%s: %+v", field, got)
		}
	}
}
