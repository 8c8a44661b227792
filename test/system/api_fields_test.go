package system_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

const fieldsFile = "testdata/fields.json"

// doors maps each type to a query that reaches one object of it, owned by the actor
// "owner" where it has an owner. %s stands for the selected fields.
var doors = map[string]string{
	"User":                    `node(id: "{owner}") { ... on User { %s } }`,
	"Order":                   `node(id: "{order}") { ... on Order { %s } }`,
	"OrderLogEntry":           `node(id: "{order}") { ... on Order { timeline { %s } } }`,
	"Refund":                  `node(id: "{order}") { ... on Order { refunds { %s } } }`,
	"Payment":                 `node(id: "{payment}") { ... on Payment { %s } }`,
	"PaymentOption":           `node(id: "{payment}") { ... on Payment { option { %s } } }`,
	"OrderConnection":         `orders { %s }`,
	"OrderEdge":               `orders { edges { %s } }`,
	"OrderTask":               `orderTask(id: "{task}") { %s }`,
	"QueueTicket":             `node(id: "{ticket}") { ... on QueueTicket { %s } }`,
	"TicketDraw":              `node(id: "{ticket}") { ... on QueueTicket { draw { %s } } }`,
	"QueueWait":               `node(id: "{ticket}") { ... on QueueTicket { position { wait { %s } } } }`,
	"OrderQueue":              `orderTask(id: "{task}") { queue { %s } }`,
	"ItemFigures":             `sale(by: {id: "{sale}"}) { saleStats { items { %s } } }`,
	"GateStage":               `sale(by: {id: "{sale}"}) { saleStats { gate { %s } } }`,
	"QueuePosition":           `node(id: "{ticket}") { ... on QueueTicket { position { %s } } }`,
	"SeckillPath":             `node(id: "{ticket}") { ... on QueueTicket { path { %s } } }`,
	"Sale":                    `sale(by: {id: "{sale}"}) { %s }`,
	"Accent":                  `sale(by: {id: "{sale}"}) { accent { %s } }`,
	"AccentShades":            `sale(by: {id: "{sale}"}) { accent { light { %s } } }`,
	"SaleViewer":              `sale(by: {id: "{sale}"}) { viewer { %s } }`,
	"SaleAccess":              `sale(by: {id: "{sale}"}) { viewer { access { %s } } }`,
	"AccessRule":              `sale(by: {id: "{sale}"}) { access { %s } }`,
	"AccessCodeBatch":         `sale(by: {id: "{sale}"}) { accessCodes { %s } }`,
	"AccessCode":              `accessCodes(saleId: "{sale}", batch: 1) { %s }`,
	"AccessList":              `accessLists { %s }`,
	"SaleReminder":            `sale(by: {id: "{sale}"}) { viewer { reminder { %s } } }`,
	"NoticeSettings":          `viewer { noticeSettings { %s } }`,
	"PushDevice":              `viewer { noticeSettings { devices { %s } } }`,
	"NoticeChoice":            `viewer { noticeSettings { choices { %s } } }`,
	"SaleItemViewer":          `sale(by: {id: "{sale}"}) { viewer { items { %s } } }`,
	"WaitlistEntry":           `sale(by: {id: "{sale}"}) { viewer { waitlistEntry { %s } } }`,
	"OrderTotals":             `sale(by: {id: "{sale}"}) { orderTotals(since: "2026-01-01T00:00:00Z") { %s } }`,
	"SaleSwitches":            `sale(by: {id: "{sale}"}) { switches { %s } }`,
	"SaleLogEntry":            `sale(by: {id: "{sale}"}) { timeline { %s } }`,
	"LogSeal":                 `sale(by: {id: "{sale}"}) { logSeal { %s } }`,
	"SaleStats":               `sale(by: {id: "{sale}"}) { saleStats { %s } }`,
	"RejectionCount":          `sale(by: {id: "{sale}"}) { saleStats { rejections { %s } } }`,
	"SaleStatsPoint":          `sale(by: {id: "{sale}"}) { saleStats { series { %s } } }`,
	"SaleReport":              `saleReport(saleId: "{sale}") { %s }`,
	"SaleApproval":            `sale(by: {id: "{sale}"}) { approved { %s } }`,
	"ApprovedTerm":            `sale(by: {id: "{sale}"}) { approved { terms { %s } } }`,
	"OrderClusterConnection":  `sale(by: {id: "{sale}"}) { clusters(first: 5) { %s } }`,
	"OrderClusterEdge":        `sale(by: {id: "{sale}"}) { clusters(first: 5) { edges { %s } } }`,
	"OrderCluster":            `sale(by: {id: "{sale}"}) { clusters(first: 5) { edges { node { %s } } } }`,
	"OrderReview":             `node(id: "{order}") { ... on Order { review { %s } } }`,
	"SaleItem":                `sale(by: {id: "{sale}"}) { items { %s } }`,
	"Draw":                    `sale(by: {id: "{sale}"}) { items { draw { %s } } }`,
	"Stock":                   `sale(by: {id: "{sale}"}) { items { stock { %s } } }`,
	"Money":                   `sale(by: {id: "{sale}"}) { items { price { %s } } }`,
	"UserConnection":          `users { %s }`,
	"UserEdge":                `users { edges { %s } }`,
	"Goods":                   `sale(by: {id: "{sale}"}) { items { goods { %s } } }`,
	"GoodsLogEntry":           `sale(by: {id: "{sale}"}) { items { goods { timeline { %s } } } }`,
	"SaleConnection":          `sales { %s }`,
	"SaleEdge":                `sales { edges { %s } }`,
	"PageInfo":                `sales { pageInfo { %s } }`,
	"GoodsConnection":         `goods { %s }`,
	"GoodsEdge":               `goods { edges { %s } }`,
	"Intervention":            `interventions { nodes { %s } }`,
	"LogChange":               `sale(by: {id: "{sale}"}) { timeline { changes { %s } } }`,
	"DeadLetter":              `deadLetters { nodes { %s } }`,
	"DeadLetterField":         `deadLetters { nodes { fields { %s } } }`,
	"DeadLetterAct":           `deadLetterActs { nodes { %s } }`,
	"DeadLetterActConnection": `deadLetterActs { %s }`,
	"DeadLetterActEdge":       `deadLetterActs { edges { %s } }`,
	"Address":                 `myAddresses { %s }`,
	"RefusedAttempts":         `myAttempts(saleId: "{sale}") { %s }`,
	"RefusedAttempt":          `myAttempts(saleId: "{sale}") { attempts { %s } }`,
	"Recipient":               `node(id: "{order}") { ... on Order { recipient { %s } } }`,
	"OrderMetadataEntry":      `node(id: "{order}") { ... on Order { metadata { %s } } }`,
	"Fulfilment":              `node(id: "{order}") { ... on Order { fulfilment { %s } } }`,
	"Drawing":                 `sale(by: {id: "{sale}"}) { items { drawing { %s } } }`,
	"DrawEntries":             `drawEntries(itemId: "{item}") { %s }`,
	"DrawEntriesPoint":        `drawEntries(itemId: "{item}") { points { %s } }`,
	"RefundConnection":        `refunds { %s }`,
	"RefundEdge":              `refunds { edges { %s } }`,
	"HeldPayment":             `heldPayments { nodes { %s } }`,
	"Inbox":                   `inbox { %s }`,
	"InboxEntry":              `inbox { entries { %s } }`,
	"InboxKindCount":          `inbox { counts { %s } }`,
	"RateLimit":               `rateLimit { %s }`,
	"ServerInfo":              `serverInfo { %s }`,
	"MoneyTotals":             `sale(by: {id: "{sale}"}) { moneyTotals { %s } }`,
	"Receipt":                 `node(id: "{order}") { ... on Order { receipt { %s } } }`,
	"ReceiptTax":              `node(id: "{order}") { ... on Order { receipt { tax { %s } } } }`,
	"EmbeddedPayment":         `node(id: "{payment}") { ... on Payment { embedded { %s } } }`,
	"LedgerEntry":             `node(id: "{order}") { ... on Order { ledger { %s } } }`,

	"InterventionConnection":    `interventions { %s }`,
	"InterventionEdge":          `interventions { edges { %s } }`,
	"DeadLetterConnection":      `deadLetters { %s }`,
	"DeadLetterEdge":            `deadLetters { edges { %s } }`,
	"HeldPaymentConnection":     `heldPayments { %s }`,
	"HeldPaymentEdge":           `heldPayments { edges { %s } }`,
	"WebhookEventConnection":    `events { %s }`,
	"WebhookEventEdge":          `events { edges { %s } }`,
	"WebhookEvent":              `events { edges { node { %s } } }`,
	"OrderEventData":            `events { nodes { data { ... on OrderEventData { %s } } } }`,
	"RefundEventData":           `events { nodes { data { ... on OrderEventData { refund { %s } } } } }`,
	"SaleStateEventData":        `events { nodes { data { ... on SaleStateEventData { %s } } } }`,
	"StockLowEventData":         `events { nodes { data { ... on StockLowEventData { %s } } } }`,
	"UnmatchedPaymentEventData": `events { nodes { data { ... on UnmatchedPaymentEventData { %s } } } }`,
	"SignInProvider":            `signInProviders { %s }`,
	"SaleTemplate":              `saleTemplates { %s }`,
	"ServiceToken":              `serviceTokens { %s }`,
	"WebhookEndpoint":           `webhookEndpoints { %s }`,
	"WebhookDeliveryConnection": `webhookDeliveries(endpointId: "{endpoint}") { %s }`,
	"WebhookDeliveryEdge":       `webhookDeliveries(endpointId: "{endpoint}") { edges { %s } }`,
	"WebhookDelivery":           `webhookDeliveries(endpointId: "{endpoint}") { edges { node { %s } } }`,
}

// asked is the number of fields in one operation: the maximum that the guard accepts.
const asked = 10

// fieldsWhoMay queries every field of every object as every actor, over both transports,
// and compares the answers with the stored ones. Fields that appear only in answers to
// the caller's own mutation or subscription are covered by the authorisation of that
// operation.
func (m *matrix) fieldsWhoMay(t *testing.T) {
	m.furnish()
	testenv.Eventually(t, testenv.Wait, func() bool { // the newest entry of the sale's log, which has no changes
		out := m.ask(m.tokens["admin"], `query($id: ID!) { sale(by: {id: $id}) { timeline { action } } }`, map[string]any{"id": m.ids["sale"]})
		return strings.Contains(string(out.Data), "OPEN")
	}, "the opening is in the log")
	got := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m.schema.Types)) {
		def := m.schema.Types[name]
		switch door, ok := doors[name]; {
		case def.Kind != ast.Object || strings.HasPrefix(name, "__") || m.root(def):
		case ok:
			m.behind(door, def, got)
		default:
			for _, at := range m.mentions(def) {
				t.Errorf("%s is returned by %s: give it a door", name, at)
			}
		}
	}
	if *writeMatrix {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fieldsFile, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(fieldsFile)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		if field == "Sale.logSeal" { // the scheduler seals the log a while after the sale
			got[field] = strings.ReplaceAll(got[field], "SHOWN", "NULL")
		}
		switch want[field] {
		case "":
			t.Errorf("%s has no entry: to %s it answers %s", field, actors, got[field])
		case got[field]:
		default:
			t.Errorf("%s answers %s to %s, want %s", field, got[field], actors, want[field])
		}
	}
	t.Logf("%d fields, each asked by %d actors over HTTP and WebSocket", len(got), len(actors))
}

func (m *matrix) root(def *ast.Definition) bool {
	return def == m.schema.Query || def == m.schema.Mutation || def == m.schema.Subscription
}

// mentions lists where an object can appear other than in an answer to the caller's own
// mutation or subscription. Refusals concern only the caller's own request.
func (m *matrix) mentions(def *ast.Definition) (out []string) {
	if slices.Contains(def.Interfaces, "UserError") {
		return nil
	}
	for _, by := range m.schema.Types {
		if by.Kind != ast.Object || by == m.schema.Mutation || by == m.schema.Subscription {
			continue
		}
		if _, ok := doors[by.Name]; !ok && by != m.schema.Query {
			continue // appears only in the answer to the caller's own request
		}
		for _, f := range by.Fields {
			if to := f.Type.Name(); to == def.Name || slices.Contains(def.Interfaces, to) {
				out = append(out, by.Name+"."+f.Name)
			}
		}
	}
	return out
}

// furnish creates one object for every entry of doors.
func (m *matrix) furnish() {
	m.t.Helper()
	owner, operator := m.tokens["owner"], m.tokens["operator"]
	var data struct{ Viewer struct{ ID string } }
	m.ask(owner, `{ viewer { id } }`, nil).into(m.t, &data)
	m.ids["owner"], m.ids["task"] = data.Viewer.ID, m.ids["orderTask"]

	scarce := m.seed(seed.Input{Users: 2, Stock: 1}) // two buyers and one unit: as many buyers as permits
	for _, u := range scarce.Users {
		if path, _, why := m.knock("issueSeckillPath", u.AccessToken, scarce); path == "" {
			m.t.Fatalf("no path: %s", why)
		}
	}
	_, ticket, why := m.knock("issueSeckillPath", owner, scarce)
	if ticket == nil || ticket.Position == nil {
		m.t.Fatalf("no place in the waiting room: %+v %s", ticket, why)
	}
	m.ids["ticket"] = ticket.ID
	m.keep(ticket.ID)

	var paid struct {
		PayOrder struct{ Payment *struct{ ID string } }
	}
	out := m.ask(owner, `mutation($o: ID!) { payOrder(input: {orderId: $o, optionId: "sandbox", idempotencyKey: "0123456789abcdef"}) { payment { id } userErrors { code } } }`,
		map[string]any{"o": m.ids["orderId"]})
	if out.into(m.t, &paid); paid.PayOrder.Payment == nil {
		m.t.Fatalf("payOrder: %s", out.Data)
	}
	m.ids["payment"] = paid.PayOrder.Payment.ID

	m.ids["endpoint"] = m.endpoint()
	m.recipients()
	m.subscribed(m.login(m.owner.Account, m.owner.Password), "https://fcm.googleapis.com/fcm/send/owner")
	adjust := map[string]any{"itemId": m.ids["itemId"], "units": 1000, "note": "more came", "idempotencyKey": "0123456789abcdef"}
	if p := m.mutate(operator, "adjustStock", "intervention { id }", adjust); p.Intervention == nil {
		m.t.Fatalf("adjustStock: %+v", p)
	}
	if p := m.mutate(operator, "saveSaleTemplate", "template { id }", map[string]any{"saleId": m.ids["saleId"], "name": "A template"}); p.why() != "" {
		m.t.Fatalf("saveSaleTemplate: %+v", p.UserErrors)
	}
	if p, err := m.place(m.tokens["other"], order(m.ids["itemId"], "a guess")); err != nil || p.why() != "PATH_INVALID" {
		m.t.Fatalf("a guess: %+v %v", p, err)
	}
	testenv.Eventually(m.t, testenv.Wait, func() bool {
		f := m.figures(operator, m.ids["saleId"])
		return len(f.Rejections) > 0 && len(f.Series) > 0
	}, "the sale has figures")
}

// recipients gives the owner an address, and the order a recipient and a fulfilment.
func (m *matrix) recipients() {
	m.t.Helper()
	m.saveAddress(m.tokens["owner"], home)
	order, err := id.ParseOrder(m.ids["orderId"])
	if err != nil {
		m.t.Fatal(err)
	}
	owner, err := id.ParseUser(m.ids["owner"])
	if err != nil {
		m.t.Fatal(err)
	}
	db := m.database()
	err = db.Ent.OrderRecipient.Create().SetID(order).SetUserID(owner).SetName("Lin").SetPhone("13800001111").SetCountry("CN").SetRegion("Zhejiang").
		SetCity("Hangzhou").SetStreet("90 Wensan Road").SetPostalCode("310012").Exec(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	err = db.Ent.Fulfilment.Create().SetID(order).SetState("SHIPPED").SetCarrier("SF Express").SetTrackingURL("https://track.example.com/1").
		SetUpdatedAt(time.Now()).Exec(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	err = db.Ent.OrderMetadata.Create().SetID(order).SetEntries([]byte(`{"erp.id":"4711"}`)).SetUpdatedAt(time.Now()).Exec(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
}

// places replaces the ids in doors.
func (m *matrix) places() *strings.Replacer {
	return strings.NewReplacer("{owner}", m.ids["owner"], "{order}", m.ids["orderId"], "{task}", m.ids["task"],
		"{payment}", m.ids["payment"], "{ticket}", m.ids["ticket"], "{sale}", m.ids["saleId"], "{endpoint}", m.ids["endpoint"],
		"{item}", m.ids["itemId"])
}

// behind queries the fields of an object through its door.
func (m *matrix) behind(door string, def *ast.Definition, got map[string]string) {
	m.t.Helper()
	replace := m.places()
	for fields := range slices.Chunk(def.Fields, asked) {
		document := "query {"
		for i, f := range fields {
			document += fmt.Sprintf(" f%d: %s", i, fmt.Sprintf(replace.Replace(door), m.selection(f)))
		}
		document += " }"
		for _, actor := range actors {
			plain, pushed := m.ask(m.tokens[actor], document, nil), m.over(actor, document)
			for i, f := range fields {
				alias := fmt.Sprintf("f%d", i)
				outcome := plain.outcome(alias)
				if over := pushed.outcome(alias); over != outcome {
					outcome += "/" + over
				}
				name := def.Name + "." + f.Name
				got[name] = strings.TrimSpace(got[name] + " " + outcome)
			}
		}
	}
}

// selection selects a field with its required arguments.
func (m *matrix) selection(f *ast.FieldDefinition) string {
	var args []string
	for _, a := range f.Arguments {
		if a.Type.NonNull && a.DefaultValue == nil {
			args = append(args, a.Name+": "+m.value(f.Name, a.Name, a.Type))
		}
	}
	text := f.Name
	if len(args) > 0 {
		text += "(" + strings.Join(args, ", ") + ")"
	}
	switch m.schema.Types[f.Type.Name()].Kind {
	case ast.Object, ast.Interface, ast.Union:
		return text + " { __typename }"
	case ast.Scalar, ast.Enum, ast.InputObject:
	}
	return text
}

// outcome classifies one root field of an answer: refused, null, an empty list on the
// path, or a value.
func (a answer) outcome(alias string) string {
	for _, e := range a.Errors {
		if len(e.Path) == 0 || e.Path[0] == alias {
			return e.Extensions.Code
		}
	}
	var data map[string]any
	if err := json.Unmarshal(a.Data, &data); err != nil {
		return "NO_DATA"
	}
	v, ok := data[alias]
	for ok {
		switch now := v.(type) {
		case nil:
			return "NULL"
		case []any:
			if len(now) == 0 {
				return "EMPTY"
			}
			v = now[0]
		case map[string]any:
			if len(now) == 0 {
				return "OTHER" // the object is of another type than the fragment
			}
			for _, v = range now { // the only selected field
			}
		default:
			return "SHOWN"
		}
	}
	return "MISSING"
}
