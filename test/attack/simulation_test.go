//go:build attack

package attack_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/sale"
	"seckill/internal/ops/seed"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	simulatedUnits = 200
	// simulatedTime is how long each sale runs, and simulatedWindow its payment window: two
	// windows, as many as a person may let expire before the first wait. A busy machine has some
	// seconds more, until the people have an answer.
	simulatedTime   = 13 * time.Second
	simulatedMore   = 12 * time.Second
	simulatedWindow = 6 * time.Second
	// farmerBots is how many of its accounts the farmer uses at the same time.
	farmerBots = 24
	// botPause follows a refusal: who simulates shares the processors with the server, and no flood
	// is simulated.
	botPause = 200 * time.Millisecond
	// Goals where contact, address and means of payment are counted.
	mostFarmed      = 5
	mostWrong       = honestPeople * 5 / 1000
	trialsPerCard   = 3 // payments that the farmer tries with one card
	pollSimulated   = 250 * time.Millisecond
	beforeOthersBuy = 300 * time.Millisecond
)

// market is one simulated sale.
type market struct {
	*target
	made   *seed.Result
	by     sale.LimitBy
	ctx    context.Context // until the end
	bank   *providertest.Bank
	signed *providertest.Signed

	mu       sync.Mutex
	tried    map[string]int        // payments by card of the farmer, guarded by mu
	blocked  map[string]time.Time  // farmer's networks, guarded by mu
	reasons  map[*simulated]string // last refusal of people, guarded by mu
	limited  map[*simulated]bool   // people whom a rate limit kept waiting, guarded by mu
	answered map[*simulated]bool   // guarded by mu
	waiting  map[string]*simulated // accounts with a place in the waitlist, by entry, guarded by mu
}

// TestAFarmerGetsNoMoreThanItsPersons simulates sales to people and one farmer, and prints to whom the units go.
func TestAFarmerGetsNoMoreThanItsPersons(t *testing.T) {
	bank := providertest.NewBank(time.Now)
	signed := providertest.NewSigned(bank)
	service := httptest.NewServer(signed)
	t.Cleanup(service.Close)
	s := start(t, func(cfg *config.Config) {
		cfg.PaymentServiceURL = service.URL
		cfg.PaymentServiceSecret = config.Secret("whsec_" + base64.StdEncoding.EncodeToString(providertest.SignedSecret))
	})
	s.busy = true
	people, farmer := population()
	var all []*simulated
	for i := range people {
		all = append(all, &people[i])
	}
	for i := range farmer {
		all = append(all, &farmer[i])
	}
	if err := s.settle(all); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "%d people, a farmer with %d accounts, %d mailboxes, %d addresses, %d cards, a datacentre and 20 other networks; %d units\n%-26s %8s %8s %8s %8s %10s  %-15s %s\n",
		honestPeople, farmerIDs, farmerBoxes, farmerPlaces, farmerCards, simulatedUnits, "limitBy", "farmer", "unpaid", "people", "left", "unserved", "same household", "refused wrongly")
	every := sale.LimitBy{Contact: true, Address: true, Payment: true}
	for _, by := range []sale.LimitBy{{}, {Contact: true}, {Address: true}, {Payment: true}, {Contact: true, Address: true}, every} {
		got, err := s.simulate(by, bank, signed, all)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(cmp.Or(by.String(), "ACCOUNT"), ",", "+")
		got.row(&table, name)
		if by == every && (got.farmed+got.unpaid > mostFarmed || got.wrong > mostWrong) {
			t.Errorf("%s: %d units go to the farmer, want at most %d; %d people are refused wrongly, want at most %d",
				name, got.farmed+got.unpaid, mostFarmed, got.wrong, mostWrong)
		}
	}
	// No form of an address shows that a flat does not exist.
	if err := s.makeUpFlats(farmer); err != nil {
		t.Fatal(err)
	}
	got, err := s.simulate(every, bank, signed, all)
	if err != nil {
		t.Fatal(err)
	}
	got.row(&table, "the same, flats made up")
	if got.farmed > mostFarmed || got.wrong > mostWrong {
		t.Errorf("flats made up: the farmer paid %d units, want at most %d; %d people are refused wrongly, want at most %d", got.farmed, mostFarmed, got.wrong, mostWrong)
	}
	t.Logf("\n%s", table.String())
}

// sold is the result of a simulated sale.
type sold struct {
	farmed, unpaid int            // units that the farmer paid, and holds unpaid
	bought         int            // units that people paid
	homes          int            // people whom the limit refused because others of their household had a unit, or may get one
	unserved       int            // people without an answer at the end, on a busy machine
	wrong          int            // other people whom a limit refused
	why            map[string]int // those by group and reason
}

func (got sold) row(table *bytes.Buffer, name string) {
	fmt.Fprintf(table, "%-26s %8d %8d %8d %8d %10d  %-15d %d %v\n", name, got.farmed, got.unpaid, got.bought,
		simulatedUnits-got.farmed-got.unpaid-got.bought, got.unserved, got.homes, got.wrong, got.why)
}

// simulate runs one sale: people come some seconds after the opening, the farmer at once.
func (s *target) simulate(by sale.LimitBy, bank *providertest.Bank, signed *providertest.Signed, all []*simulated) (sold, error) {
	made, err := s.limited(by, seed.Input{Users: 1, Stock: simulatedUnits, PaymentWindow: simulatedWindow},
		"requires_verified_contact = true", "pow_max = 100") // the farmer's processors are not what is simulated
	if err != nil {
		return sold{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), simulatedTime+simulatedMore)
	defer cancel()
	m := &market{
		target: s, made: made, by: by, ctx: ctx, bank: bank, signed: signed, tried: map[string]int{}, blocked: map[string]time.Time{},
		reasons: map[*simulated]string{}, limited: map[*simulated]bool{}, waiting: map[string]*simulated{}, answered: map[*simulated]bool{},
	}
	var running sync.WaitGroup
	var next sync.Mutex
	at := honestPeople
	for bot := range farmerBots {
		running.Go(func() {
			random := rand.New(rand.NewPCG(42, uint64(bot))) //nolint:gosec // the same farmer in each run
			for ctx.Err() == nil {
				next.Lock()
				a := all[at]
				if at++; at == len(all) {
					at = honestPeople
				}
				next.Unlock()
				m.farm(a, random, &running)
			}
		})
	}
	var people sync.WaitGroup
	for _, a := range all[:honestPeople] {
		people.Go(func() { m.visit(a) })
	}
	running.Go(m.offers)
	m.pause(simulatedTime)
	people.Wait()
	cancel()
	running.Wait()
	return m.count(all)
}

// pause waits, at most until the end.
func (m *market) pause(d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-m.ctx.Done():
	}
}

// do runs a mutation from a client address.
func (m *market) do(a *simulated, from, field, selection string, input map[string]any) (o outcome, r refusal) {
	name := strings.ToUpper(field[:1]) + field[1:] + "Input!"
	data, r := m.askFrom(from, a.token, "mutation M($in: "+name+") { outcome: "+field+"(input: $in) { "+selection+
		" refused: userErrors { code ... on RateLimitedError { retryAfterMs } } } }", map[string]any{"in": input})
	var payload struct {
		Outcome struct {
			outcome
			Refused []refusal
		}
	}
	if r.Code == "" && json.Unmarshal(data, &payload) == nil && len(payload.Outcome.Refused) > 0 {
		r = payload.Outcome.Refused[0]
	}
	return payload.Outcome.outcome, r
}

// try asks for a path token and places an order. ticket is the place in the waiting room instead.
func (m *market) try(a *simulated, from string) (task, ticket string, r refusal) {
	o, r := m.do(a, from, "createCaptcha", "challenge { id parameters }", map[string]any{"purpose": "SECKILL", "saleId": m.made.SaleID, "kind": "PROOF_OF_WORK"})
	if r.Code != "" {
		return "", "", r
	}
	o, r = m.do(a, from, "issueSeckillPath", "path { token } ticket { id }", map[string]any{"itemId": m.made.ItemID, "captcha": solve(o.Challenge)})
	switch {
	case o.Ticket != nil:
		return "", o.Ticket.ID, r
	case o.Path == nil:
		return "", "", r
	}
	task, r = m.take(a, from, o.Path.Token)
	return task, "", r
}

// take places an order with a path token or an offer of the waitlist.
func (m *market) take(a *simulated, from, path string) (task string, r refusal) {
	o, r := m.do(a, from, "placeOrder", "orderTask { id }", map[string]any{"itemId": m.made.ItemID, "quantity": 1, "pathToken": path, "idempotencyKey": uuid.NewString()})
	if o.OrderTask == nil {
		return "", r
	}
	return o.OrderTask.ID, refusal{}
}

// followTicket waits in the waiting room.
func (m *market) followTicket(a *simulated, from, ticket string) (task string, r refusal) {
	for m.ctx.Err() == nil {
		m.pause(time.Second)
		data, r := m.askFrom(from, a.token, `query($id: ID!) { node(id: $id) { ... on QueueTicket { status path { token } } } }`, map[string]any{"id": ticket})
		var out struct {
			Node struct {
				Status string
				Path   *struct{ Token string }
			}
		}
		if r.Code != "" || json.Unmarshal(data, &out) != nil {
			continue
		}
		switch {
		case out.Node.Path != nil:
			return m.take(a, from, out.Node.Path.Token)
		case out.Node.Status == "CLOSED":
			return "", refusal{Code: "SOLD_OUT"}
		case out.Node.Status != "WAITING":
			return "", refusal{Code: "left the waiting room"}
		}
	}
	return "", refusal{Code: "SOLD_OUT"}
}

// visit is what an honest person does: come, try, wait as long as the shop asks for, pay.
func (m *market) visit(a *simulated) {
	m.pause(a.comes)
	for m.ctx.Err() == nil {
		task, ticket, r := m.try(a, a.from)
		if ticket != "" {
			task, r = m.followTicket(a, a.from, ticket)
		}
		if task != "" {
			m.pause(beforeOthersBuy)
			m.settlePayment(a, a.from, task, a.card)
			m.answer(a)
			return
		}
		m.mu.Lock()
		m.reasons[a] = r.Code
		m.limited[a] = m.limited[a] || r.Code == "RATE_LIMITED"
		m.mu.Unlock()
		switch r.Code {
		case "RATE_LIMITED", "OVERLOADED", "UNAVAILABLE", "TIMEOUT":
			m.pause(max(time.Duration(r.RetryAfterMs)*time.Millisecond, pollSimulated))
		case "SOLD_OUT":
			if m.join(a, a.from) {
				m.answer(a)
				return // offers are followed by others
			}
			m.pause(time.Second)
		default:
			m.answer(a)
			return
		}
	}
}

// answer notes that a person needs nothing more from the server.
func (m *market) answer(a *simulated) {
	m.mu.Lock()
	m.answered[a] = m.ctx.Err() == nil
	m.mu.Unlock()
}

// join takes a place in the waitlist. It reports whether trying again is of no use.
func (m *market) join(a *simulated, from string) bool {
	o, r := m.do(a, from, "createCaptcha", "challenge { id parameters }", map[string]any{"purpose": "WAITLIST", "saleId": m.made.SaleID, "kind": "PROOF_OF_WORK"})
	if r.Code == "" {
		o, r = m.do(a, from, "joinWaitlist", "waitlistEntry { id }", map[string]any{"itemId": m.made.ItemID, "captcha": solve(o.Challenge)})
	}
	if o.WaitlistEntry != nil {
		m.mu.Lock()
		m.waiting[o.WaitlistEntry.ID] = a
		m.mu.Unlock()
		return true
	}
	return r.Code == "SOLD_OUT" || r.Code == "PURCHASE_LIMIT_REACHED"
}

// offers lets those to whom the waitlist offers a unit take it.
func (m *market) offers() {
	saleID, err := id.ParseSale(m.made.SaleID)
	if err != nil {
		m.t.Error(err)
		return
	}
	db, err := postgres.Open(context.Background(), postgres.Options{URL: m.cfg.DatabaseURL.Reveal()})
	if err != nil {
		m.t.Error(err)
		return
	}
	defer func() { _ = db.Close() }()
	var taking sync.WaitGroup
	defer taking.Wait()
	seen := map[string]bool{}
	for m.ctx.Err() == nil {
		m.pause(pollSimulated)
		var offered []id.Waitlist
		_ = db.WithTx(m.ctx, func(ctx context.Context, tx *ent.Tx) error {
			rows, err := tx.QueryContext(ctx, `SELECT id FROM waitlist_entries WHERE sale_id = $1 AND status = 'OFFERED'`, saleID.UUID())
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var entry uuid.UUID
				if err := rows.Scan(&entry); err != nil {
					return err
				}
				offered = append(offered, id.Waitlist(entry))
			}
			return rows.Err()
		})
		for _, entry := range offered {
			m.mu.Lock()
			a := m.waiting[entry.Public()]
			m.mu.Unlock()
			if a == nil || seen[entry.Public()] {
				continue
			}
			seen[entry.Public()] = true
			taking.Go(func() {
				from, card := a.from, a.card
				if a.group == "" {
					from = m.network(rand.New(rand.NewPCG(42, 0))) //nolint:gosec // the same farmer in each run
				} else {
					m.pause(beforeOthersBuy)
				}
				if task, _ := m.take(a, from, entry.Public()); task != "" {
					if a.group == "" {
						card = m.card()
					}
					m.settlePayment(a, from, task, card)
				}
			})
		}
	}
}

// farm is what the farmer does with one account, at once.
func (m *market) farm(a *simulated, random *rand.Rand, running *sync.WaitGroup) {
	from := m.network(random)
	if from == "" {
		m.pause(20 * time.Millisecond)
		return
	}
	task, ticket, r := m.try(a, from)
	switch {
	case task != "":
		running.Go(func() { m.settlePayment(a, from, task, m.card()) })
	case ticket != "":
		running.Go(func() {
			if task, _ := m.followTicket(a, from, ticket); task != "" {
				m.settlePayment(a, from, task, m.card())
			}
		})
	case r.Code == "RATE_LIMITED" && r.RetryAfterMs > 0:
		m.mu.Lock()
		m.blocked[from] = time.Now().Add(time.Duration(min(r.RetryAfterMs, 5000)) * time.Millisecond)
		m.mu.Unlock()
	case r.Code == "SOLD_OUT":
		m.join(a, from)
		m.pause(botPause)
	default:
		m.pause(botPause)
	}
}

// network returns a client address of the farmer which no rate limit blocks: one of 200 of a
// datacentre, or one of 20 of other providers; "" = all are blocked.
func (m *market) network(random *rand.Rand) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 20 {
		n := random.IntN(220)
		from := fmt.Sprintf("45.77.%d.%d", n, 10+n)
		if n >= 200 {
			from = fmt.Sprintf("%d.9.9.9", 180+n-200)
		}
		if time.Now().After(m.blocked[from]) {
			return from
		}
	}
	return ""
}

// card returns a card of the farmer with which a payment may succeed; "" = the unit stays unpaid.
func (m *market) card() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	best := "card 0 of the farmer"
	for n := range farmerCards {
		if card := fmt.Sprintf("card %d of the farmer", n); m.tried[card] < m.tried[best] {
			best = card
		}
	}
	if m.by.Payment && m.tried[best] >= trialsPerCard {
		return ""
	}
	m.tried[best]++
	return best
}

// settlePayment pays an order once it is written.
func (m *market) settlePayment(a *simulated, from, task, card string) {
	taskID, err := id.ParseTask(task)
	if err != nil || card == "" {
		return
	}
	for m.ctx.Err() == nil {
		data, r := m.askFrom(from, a.token, `mutation($in: PayOrderInput!) { payOrder(input: $in) { payment { id } userErrors { code } } }`,
			map[string]any{"in": map[string]any{"orderId": id.Order(taskID).Public(), "optionId": "service", "idempotencyKey": uuid.NewString()}})
		var out struct {
			PayOrder struct {
				Payment    *struct{ ID string }
				UserErrors []refusal
			}
		}
		if r.Code == "" && json.Unmarshal(data, &out) == nil && out.PayOrder.Payment != nil {
			m.report(out.PayOrder.Payment.ID, card)
			return
		}
		if r.Code == "" && len(out.PayOrder.UserErrors) > 0 && out.PayOrder.UserErrors[0].Code != "NOT_FOUND" {
			return
		}
		m.pause(pollSimulated)
	}
}

// report lets the bank take the money of a payment, and report it.
func (m *market) report(payment, card string) {
	paymentID, err := id.ParsePayment(payment)
	if err != nil {
		m.t.Error(err)
		return
	}
	c, ok := m.bank.Charge(paymentID)
	if !ok || !m.bank.PayBy(paymentID, c.AmountMinor, c.Currency, card) {
		return
	}
	c, _ = m.bank.Charge(paymentID)
	header, body, _ := m.signed.Report(uuid.NewString(), c)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, m.url+"/webhooks/payments/service", bytes.NewReader(body))
	if err != nil {
		m.t.Error(err)
		return
	}
	req.Header = header
	res, err := m.client.Do(req)
	if err != nil {
		m.t.Error(err)
		return
	}
	_ = res.Body.Close()
}

// count reads from the record whose units are paid or held.
func (m *market) count(all []*simulated) (sold, error) {
	saleID, err := id.ParseSale(m.made.SaleID)
	if err != nil {
		return sold{}, err
	}
	status := map[string]string{}
	err = m.write(func(ctx context.Context, tx *ent.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT u.account, o.status FROM orders o JOIN users u ON u.id = o.user_id WHERE o.sale_id = $1 ORDER BY o.status IN ('PAID', 'PENDING_PAYMENT')`, saleID.UUID())
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var account, of string
			if err := rows.Scan(&account, &of); err != nil {
				return err
			}
			status[account] = of
		}
		return rows.Err()
	})
	out, homes := sold{why: map[string]int{}}, map[place]bool{}
	for _, a := range all {
		homes[a.place] = homes[a.place] || status[a.account] != "" || a.group != "" && !m.answered[a]
	}
	for _, a := range all {
		switch of := status[a.account]; {
		case a.group == "" && of == "PAID":
			out.farmed++
		case a.group == "" && of == "PENDING_PAYMENT":
			out.unpaid++
		case a.group == "":
		case of == "PAID" || of == "PENDING_PAYMENT":
			out.bought++
		case of != "": // had a unit, and did not pay in time
		case !m.answered[a]:
			out.unserved++
		case m.reasons[a] == "PURCHASE_LIMIT_REACHED" && homes[a.place]:
			out.homes++
		case m.limited[a]:
			out.wrong++
			out.why[string(a.group)+" RATE_LIMITED"]++
		case m.reasons[a] != "SOLD_OUT" && m.reasons[a] != "":
			out.wrong++
			out.why[string(a.group)+" "+m.reasons[a]]++
		}
	}
	if err == nil && out.farmed+out.unpaid+out.bought > simulatedUnits {
		err = fmt.Errorf("%+v: more than %d units", out, simulatedUnits)
	}
	return out, err
}
