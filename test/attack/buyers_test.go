//go:build attack

package attack_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/internal/app"
	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// outcome is the answer of a mutation with the alias "outcome".
type outcome struct {
	UserErrors    []struct{ Code string }
	Challenge     *challenge
	Path          *struct{ Token string }
	Ticket        *struct{ ID string }
	Intervention  *struct{ State string }
	WaitlistEntry *struct{ ID string }
	OrderTask     *struct{ ID string }
	Waits         []struct{ Cause string }
	EndedSessions int
}

func (o outcome) code() string {
	if len(o.UserErrors) == 0 {
		return ""
	}
	return o.UserErrors[0].Code
}

// ask sends any document with a bearer token. code is that of the first error.
func (s *target) ask(token, document string, variables map[string]any) (data json.RawMessage, code string) {
	data, refused := s.askFrom("93.186.1.1", token, document, variables)
	return data, refused.Code
}

// refusal is an error code, and the wait that it asks for.
type refusal struct {
	Code         string
	RetryAfterMs int
}

func (s *target) askFrom(from, token, document string, variables map[string]any) (json.RawMessage, refusal) {
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		return nil, refusal{Code: err.Error()}
	}
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	_, text, _ := s.send(from, string(body), header)
	if s.busy && len(text) == 0 {
		return nil, refusal{Code: "UNAVAILABLE"}
	}
	var out struct {
		Data   json.RawMessage
		Errors []struct{ Extensions refusal }
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, refusal{Code: fmt.Sprintf("%.200s", text)}
	}
	if len(out.Errors) > 0 {
		return out.Data, out.Errors[0].Extensions
	}
	return out.Data, refusal{}
}

// act runs a mutation with one input. code is a top-level error or else a refusal.
func (s *target) act(token, field, selection string, input map[string]any) (o outcome, code string) {
	name := strings.ToUpper(field[:1]) + field[1:] + "Input!"
	data, code := s.ask(token, "mutation M($in: "+name+") { outcome: "+field+"(input: $in) { "+selection+" userErrors { code } } }", map[string]any{"in": input})
	var payload struct{ Outcome outcome }
	if err := json.Unmarshal(data, &payload); err != nil && code == "" {
		return o, err.Error()
	}
	if code == "" {
		code = payload.Outcome.code()
	}
	return payload.Outcome, code
}

// sale seeds a sale with buyers and waits until the server knows it.
func (s *target) sale(in seed.Input) (*seed.Result, error) {
	in.Lasts, in.PurchaseLimit, in.PaymentWindow = time.Hour, 1, cmp.Or(in.PaymentWindow, 15*time.Minute)
	made, err := app.Seed(context.Background(), s.cfg, in, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		data, _ := s.ask(made.Users[0].AccessToken, `query($id: ID!) { sale(by: {id: $id}) { phase } }`, map[string]any{"id": made.SaleID})
		return strings.Contains(string(data), `"LIVE"`) || in.OpensIn > 0 && strings.Contains(string(data), `"UPCOMING"`)
	}, "the server knows the sale")
	return made, nil
}

// work answers a proof of work for a path token.
func (s *target) work(token, saleID string) map[string]any {
	o, _ := s.act(token, "createCaptcha", "challenge { id parameters }", map[string]any{"purpose": "SECKILL", "saleId": saleID, "kind": "PROOF_OF_WORK"})
	return solve(o.Challenge)
}

func (s *target) path(made *seed.Result, token string) (outcome, string) {
	return s.act(token, "issueSeckillPath", "path { token } ticket { id }", map[string]any{"itemId": made.ItemID, "captcha": s.work(token, made.SaleID)})
}

// renewPermits lets accounts that hold all permits of an item renew them while a buyer
// waits.
func renewPermits(s *target) error {
	made, err := s.sale(seed.Input{Users: 4, Stock: 2, PermitRatio: 1.5})
	if err != nil {
		return err
	}
	for _, u := range made.Users[:3] {
		if o, code := s.path(made, u.AccessToken); o.Path == nil {
			return fmt.Errorf("an attacker got no permit: %s", code)
		}
	}
	if o, code := s.path(made, made.Users[3].AccessToken); o.Ticket == nil {
		return fmt.Errorf("the buyer does not wait: %s", code)
	}
	for _, u := range made.Users[:3] {
		if o, _ := s.path(made, u.AccessToken); o.Path != nil {
			return errors.New("a permit was renewed past the buyer who waits")
		}
	}
	return nil
}

// solveEarly sends a proof of work that was solved before the opening.
func solveEarly(s *target) error {
	made, err := s.sale(seed.Input{Users: 1, Stock: 2, OpensIn: 30 * time.Minute})
	if err != nil {
		return err
	}
	if o, code := s.path(made, made.Users[0].AccessToken); o.Path != nil || code == "" {
		return fmt.Errorf("a path token before the opening: %s", code)
	}
	return nil
}

// fillWaitlist joins and leaves a waitlist as fast as possible.
func fillWaitlist(s *target) error {
	made, err := s.sale(seed.Input{Users: 1, Stock: 2})
	if err != nil {
		return err
	}
	for range 60 {
		if _, code := s.act(made.Users[0].AccessToken, "joinWaitlist", "waitlistEntry { id }", map[string]any{"itemId": made.ItemID}); code == "RATE_LIMITED" {
			return nil
		}
	}
	return errors.New("60 calls were answered")
}

// smallSteps lets one operator put units on sale in small steps.
func smallSteps(s *target) error {
	made, err := s.sale(seed.Input{Users: 1, Stock: 2})
	if err != nil {
		return err
	}
	operator, err := s.staff("operator@example.com", "OPERATOR")
	if err != nil {
		return err
	}
	for n := range 5 {
		o, code := s.act(operator, "adjustStock", "intervention { state }", map[string]any{
			"itemId": made.ItemID, "units": 60, "note": "a few more", "idempotencyKey": uuid.NewString(),
		})
		if code != "" || o.Intervention == nil {
			return fmt.Errorf("step %d: %s", n+1, code)
		}
		if o.Intervention.State == "REQUESTED" {
			return nil // it waits for a second person
		}
	}
	return errors.New("300 units were put on sale by one person")
}

// staff creates an account with a role and signs in.
func (s *target) staff(account, role string) (token string, err error) {
	if _, err := app.CreateUser(context.Background(), s.cfg, app.NewUser{Account: account, Role: role, DisplayName: role, Password: password}); err != nil {
		return "", err
	}
	in := s.login("93.187.1.1", account, password, nil)
	if in.Tokens == nil {
		return "", fmt.Errorf("%s did not sign in: %s", account, in.code())
	}
	return in.Tokens.AccessToken, nil
}

// keepSession uses a stolen session after its owner changed the password.
func keepSession(s *target) error {
	stolen, err := s.staff("victim@example.com", "CUSTOMER")
	if err != nil {
		return err
	}
	own := s.login("93.187.1.1", "victim@example.com", password, nil)
	if own.Tokens == nil {
		return fmt.Errorf("the owner did not sign in: %s", own.code())
	}
	if _, code := s.act(stolen, "changePassword", "endedSessions", map[string]any{"currentPassword": "a guess of it", "newPassword": "violin tower 46 fog"}); code != "INVALID_CREDENTIALS" {
		return fmt.Errorf("the thief changes the password: %q", code)
	}
	if _, code := s.act(own.Tokens.AccessToken, "changePassword", "endedSessions", map[string]any{"currentPassword": password, "newPassword": "violin tower 46 fog"}); code != "" {
		return fmt.Errorf("the owner cannot change the password: %s", code)
	}
	if _, code := s.ask(stolen, `{ myOrders { totalCount } }`, nil); code != "UNAUTHENTICATED" {
		return fmt.Errorf("the stolen session: %q", code)
	}
	return nil
}

// fillSockets opens anonymous sockets from one IPv6 customer, and a signed-in one.
func fillSockets(s *target) error {
	open := func(from, token string) (*apiclient.Socket, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return (&apiclient.Client{URL: s.url, HTTP: &http.Client{}, From: from, Token: token}).Dial(ctx)
	}
	var held []*apiclient.Socket
	defer func() {
		for _, c := range held {
			_ = c.CloseNow()
		}
	}()
	refused := false
	for n := range 700 { // MaxSockets is 1,000: 100 for a /64, 300 for a /48
		conn, err := open(fmt.Sprintf("2001:db8:9:%x::1", n*257%65536), "")
		if err != nil {
			refused = true
			break
		}
		held = append(held, conn)
	}
	if !refused || len(held) > 300 {
		return fmt.Errorf("%d sockets of one customer were accepted", len(held))
	}
	made, err := s.sale(seed.Input{Users: 1, Stock: 1})
	if err != nil {
		return err
	}
	conn, err := open("93.188.1.1", made.Users[0].AccessToken)
	if err != nil {
		return fmt.Errorf("a signed-in user has no socket: %w", err)
	}
	return conn.CloseNow()
}

// readDrafts looks for products that are in no public sale.
func readDrafts(s *target) error {
	operator, err := s.staff("editor@example.com", "OPERATOR")
	if err != nil {
		return err
	}
	const secret = "A product of next month"
	if _, code := s.act(operator, "createGoods", "goods { id }", map[string]any{"name": secret, "listPrice": map[string]any{"amount": "1.00", "currencyCode": "CNY"}}); code != "" {
		return fmt.Errorf("createGoods: %s", code)
	}
	const document = `{ goods(first: 100) { edges { node { name } } } }`
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		data, _ := s.ask(operator, document, nil)
		return strings.Contains(string(data), secret)
	}, "the server knows the product")
	if data, _ := s.ask("", document, nil); strings.Contains(string(data), secret) {
		return errors.New("a visitor reads it")
	}
	return nil
}

// callTogether calls with forty accounts from one address, and then with one more.
func callTogether(s *target) error {
	made, err := s.sale(seed.Input{Users: 41, Stock: 2})
	if err != nil {
		return err
	}
	passed := 0
	call := func(token string) bool {
		data, r := s.askFrom("93.190.1.1", token, `mutation($in: CreateCaptchaInput!) { createCaptcha(input: $in) { challenge { id } } }`,
			map[string]any{"in": map[string]any{"purpose": "SECKILL", "saleId": made.SaleID, "kind": "PROOF_OF_WORK"}})
		return r.Code == "" && strings.Contains(string(data), `"id"`)
	}
	for n := range 400 {
		if call(made.Users[n%40].AccessToken) {
			passed++
		}
	}
	if passed > 2*(40*3+60) { // the calls may take longer than one window
		return fmt.Errorf("%d of 400 calls passed", passed)
	}
	if !call(made.Users[40].AccessToken) {
		return errors.New("another account of the network is refused")
	}
	return nil
}
