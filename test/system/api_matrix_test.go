package system_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/generated"
	"seckill/internal/app"
	"seckill/internal/buy/access"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// writeMatrix stores the current answers. Review the diff before committing it.
var writeMatrix = flag.Bool("matrix", false, "store the matrix of who may do what")

const matrixFile = "testdata/matrix.json"

// actors query every field in this order: the one with the most rights comes last.
var actors = []string{"anonymous", "expired", "forged", "other", "service", "operator", "admin", "owner"}

// TestWhoMayDoWhat queries every field of the schema as every actor. A field without an
// entry in the matrix fails: decide who may query it.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	s := newSite(t, withPush(t))
	s.start("api", "worker", "scheduler")
	m := newMatrix(s)
	m.fieldsWhoMay(t)
	m.relay(t)
	got := map[string]map[string]string{}
	for _, f := range m.fields() {
		got[f.name] = map[string]string{}
		for _, actor := range actors {
			got[f.name][actor] = m.outcome(f, actor)
		}
	}
	if *writeMatrix {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(matrixFile, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		for _, actor := range actors {
			if want[field][actor] == "" {
				t.Errorf("%s has no entry for %s: it answers %s", field, actor, got[field][actor])
			} else if got[field][actor] != want[field][actor] {
				t.Errorf("%s answers %s to %s, want %s", field, got[field][actor], actor, want[field][actor])
			}
		}
	}
}

// allScopes returns the names of all scopes of service tokens.
func allScopes() (names []string) {
	for _, scope := range auth.Scopes() {
		names = append(names, string(scope))
	}
	return names
}

// matrix is an installation with one object of each kind, and tokens for all actors.
type matrix struct {
	*site
	owner  seed.LoadUser
	schema *ast.Schema
	tokens map[string]string
	ids    map[string]string // argument → the id of an object of the owner
}

// over runs a query or a mutation as an actor over a WebSocket.
func (m *matrix) over(actor, document string) answer {
	m.t.Helper()
	l := m.newLine(m.tokens[actor])
	out := l.ask(document)
	if !l.refused {
		_ = l.conn.Close(websocket.StatusNormalClosure, "") // the server may have closed it already
	}
	return out
}

// keep keeps the owner's position in a waiting room, as an open page does.
func (m *matrix) keep(ticket string) {
	m.t.Helper()
	l := m.newLine(m.tokens["owner"])
	query, _ := json.Marshal(map[string]string{ // strings
		"query": `subscription { queuePosition(ticketId: "` + ticket + `") { kind } }`,
	})
	l.write(frame{ID: "place", Type: "subscribe", Payload: query})
	if f := l.read(); f.Type != "next" {
		m.t.Fatalf("the place is not kept: %+v", f)
	}
	go func() { // a connection that is not read answers no pings, and the server closes it
		for {
			if _, err := l.conn.Next(l.ctx); err != nil {
				return
			}
		}
	}()
}

func newMatrix(s *site) *matrix {
	s.t.Helper()
	made := s.seed(seed.Input{Users: 2, Stock: 5, PathTTL: time.Hour})
	s.rule(made, access.Rules{{Kind: access.All}})
	owner, other := made.Users[0], made.Users[1]
	m := &matrix{site: s, owner: owner, schema: generated.NewExecutableSchema(generated.Config{}).Schema()}
	m.tokens = map[string]string{"anonymous": "", "owner": owner.AccessToken, "other": other.AccessToken}
	for name, role := range map[string]string{"operator": "OPERATOR", "admin": "ADMIN"} {
		user := app.NewUser{Account: name + "@example.com", Role: role, DisplayName: name, Password: "a password of a test"}
		if _, err := app.CreateUser(s.t.Context(), s.cfg, user); err != nil {
			s.t.Fatal(err)
		}
		m.tokens[name] = s.login(user.Account, user.Password)
	}
	s.codes(m.tokens["operator"], made.SaleID, 1, 1)
	_, m.tokens["service"] = m.serviceToken(m.tokens["admin"], allScopes()...)
	head, signature, _ := strings.Cut(owner.AccessToken[strings.Index(owner.AccessToken, ".")+1:], ".")
	m.tokens["forged"] = owner.AccessToken[:strings.Index(owner.AccessToken, ".")+1] + head + "." + strings.Repeat("A", len(signature))
	m.tokens["expired"] = m.expired()
	p, err := s.place(owner.AccessToken, order(made.ItemID, owner.Path))
	if err != nil || p.OrderTask == nil {
		s.t.Fatalf("placed: %+v %v", p, err)
	}
	s.drained(made.SaleID, 1)
	task, err := id.ParseTask(p.OrderTask.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	orderID := id.Order(task).Public()
	m.ids = map[string]string{
		"saleId": made.SaleID, "itemId": made.ItemID, "orderTaskId": p.OrderTask.ID, "orderId": orderID,
		"order": orderID, "orderTask": p.OrderTask.ID, "node": orderID, "nodes": orderID, "sale": made.SaleID,
	}
	return m
}

// expired returns a token with a valid signature and an expiry in the past.
func (m *matrix) expired() string {
	m.t.Helper()
	current, _, err := m.cfg.SigningKeys()
	if err != nil {
		m.t.Fatal(err)
	}
	keys, err := auth.NewKeys(auth.Key(current))
	if err != nil {
		m.t.Fatal(err)
	}
	tokens, err := auth.NewTokens(auth.TokensConfig{
		Keys: keys, Clock: clock.NewFake(time.Now().Add(-24 * time.Hour)), Sessions: customers{}, Roles: customers{},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	token, _, err := tokens.Mint(auth.MintInput{User: id.New[id.User](), Session: id.New[id.Session](), Role: auth.Customer})
	if err != nil {
		m.t.Fatal(err)
	}
	return token
}

// rootField is a root field with a document that queries it.
type rootField struct {
	name     string
	document string
	stream   bool
	mutation bool
}

// fields returns all root fields; those that end sessions or the sale come last.
func (m *matrix) fields() []rootField {
	var out, last []rootField
	for _, root := range []*ast.Definition{m.schema.Query, m.schema.Mutation, m.schema.Subscription} {
		for _, f := range root.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			r := rootField{name: f.Name, document: m.document(root, f), stream: root == m.schema.Subscription, mutation: root == m.schema.Mutation}
			if f.Name == "logout" || f.Name == "endSale" {
				last = append(last, r)
				continue
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(last, func(a, b rootField) int { return strings.Compare(a.name, b.name) })
	return append(out, last...)
}

func (m *matrix) document(root *ast.Definition, f *ast.FieldDefinition) string {
	var args []string
	for _, a := range f.Arguments {
		if a.Type.NonNull && a.DefaultValue == nil {
			args = append(args, a.Name+": "+m.value(f.Name, a.Name, a.Type))
		}
	}
	selection := "{ __typename }"
	if t := m.schema.Types[f.Type.Name()]; t.Fields.ForName("userErrors") != nil {
		selection = "{ userErrors { code } }"
	}
	call := ""
	if len(args) > 0 {
		call = "(" + strings.Join(args, ", ") + ")"
	}
	return fmt.Sprintf("%s { outcome: %s%s %s }", strings.ToLower(root.Name), f.Name, call, selection)
}

// value returns a literal that is valid for a type.
func (m *matrix) value(field, name string, t *ast.Type) string {
	if t.Elem != nil {
		return "[" + m.value(field, name, t.Elem) + "]"
	}
	def := m.schema.Types[t.Name()]
	switch {
	case t.Name() == "ID":
		for _, key := range []string{name, field} {
			if known, ok := m.ids[key]; ok {
				return `"` + known + `"`
			}
		}
		return `"` + id.NewIn[id.Ticket](0).Public() + `"`
	case name == "country":
		return `"CN"`
	case name == "phone":
		return `"13800001111"`
	case t.Name() == "Int", t.Name() == "Float":
		return "1"
	case t.Name() == "Boolean":
		return "false"
	case t.Name() == "DateTime":
		return `"2030-01-01T00:00:00Z"`
	case def.Kind == ast.Enum:
		return def.EnumValues[0].Name
	case def.Kind == ast.InputObject && def.Directives.ForName("oneOf") != nil:
		return "{" + def.Fields[0].Name + ": " + m.value(field, def.Fields[0].Name, def.Fields[0].Type) + "}"
	case def.Kind == ast.InputObject:
		var parts []string
		for _, f := range def.Fields {
			if f.Type.NonNull && f.DefaultValue == nil {
				parts = append(parts, f.Name+": "+m.value(field, f.Name, f.Type))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return `"0123456789abcdefghij"`
}

// outcome classifies an answer: refused for the actor, not found for the actor, or
// allowed, whatever else is wrong with the request.
func (m *matrix) outcome(f rootField, actor string) string {
	m.t.Helper()
	if f.stream {
		return sorted(m.streamed(f, actor))
	}
	plain := sorted(m.ask(m.tokens[actor], f.document, nil))
	pushed := m.over(actor, f.document)
	if f.mutation {
		if code := pushed.code(); code != "BAD_USER_INPUT" && code != "UNAUTHENTICATED" || string(pushed.Data) != "" {
			m.t.Errorf("%s over a WebSocket: %s %+v, want it refused: mutations go by POST", f.name, pushed.Data, pushed.Errors)
		}
		return plain
	}
	if over := sorted(pushed); over != plain {
		return plain + "/" + over
	}
	return plain
}

// changesOnly is the subscription without an initial snapshot: an open and silent stream
// counts as allowed.
const changesOnly = "myOrderUpdates"

// users are the actors with a valid token of a user.
var users = []string{"other", "operator", "admin", "owner"}

// streamed opens a subscription over a WebSocket and returns its first answer, which is
// the error when it is refused.
func (m *matrix) streamed(f rootField, actor string) (out answer) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), testenv.Wait)
	defer cancel()
	conn, err := m.client(m.tokens[actor]).Dial(ctx)
	if refusesToken(err) {
		return unauthenticated()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := conn.Send(ctx, "s", "subscribe", map[string]any{"query": f.document}); err != nil {
		m.t.Fatal(err)
	}
	quiet, done := context.WithCancel(ctx)
	defer done()
	if f.name == changesOnly && slices.Contains(users, actor) { // for others, there is a refusal to wait for
		defer time.AfterFunc(3*time.Second, done).Stop()
	}
	for {
		got, err := conn.Next(quiet)
		switch {
		case refusesToken(err):
			return unauthenticated()
		case err != nil:
			if f.name != changesOnly {
				m.t.Errorf("%s as %s: no first state: %v", f.name, actor, err)
			}
			return out
		case got.Type == "error":
			_ = json.Unmarshal([]byte(`{"errors":`+string(got.Payload)+`}`), &out)
			return out
		case got.Type == "next":
			_ = json.Unmarshal(got.Payload, &out)
			return out
		case got.Type == "complete":
			return out
		}
	}
}

func unauthenticated() (out answer) {
	_ = json.Unmarshal([]byte(`{"errors":[{"extensions":{"code":"UNAUTHENTICATED"}}]}`), &out)
	return out
}

func sorted(out answer) string {
	var data struct {
		Outcome json.RawMessage
	}
	_ = json.Unmarshal(out.Data, &data) // missing data is classified below
	var payload UserErrors
	_ = json.Unmarshal(data.Outcome, &payload) // lists and scalars have no refusals
	switch code := out.code(); {
	case code == "UNAUTHENTICATED", code == "FORBIDDEN", code == "NOT_FOUND", code == "INTERNAL":
		return code
	case payload.why() == "NOT_FOUND":
		return "NOT_FOUND"
	case code == "" && (string(data.Outcome) == "null" || string(data.Outcome) == "[null]"):
		return "NULL"
	}
	return "ALLOWED"
}

// customers are users whose sessions never end.
type customers struct{}

func (customers) Revoked(id.Session) bool { return false }

func (customers) Role(context.Context, id.User) (auth.Role, error) { return auth.Customer, nil }
