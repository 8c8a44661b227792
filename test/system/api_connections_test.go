package system_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// listed is a page of a connection.
type listed struct {
	TotalCount int
	PageInfo   struct {
		HasNextPage bool
		EndCursor   string
	}
	Edges []struct {
		Cursor string
		Node   struct{ ID string }
	}
}

func (s *site) listed(token, field, arguments string) listed {
	s.t.Helper()
	var data map[string]listed
	s.ask(token, `{ `+field+`(`+arguments+`) { totalCount pageInfo { hasNextPage endCursor } edges { cursor node { id } } } }`, nil).into(s.t, &data)
	return data[field]
}

// typeOf returns the type of a node, "" when it is not there.
func (s *site) typeOf(token, nodeID string) string {
	s.t.Helper()
	var data struct {
		Node *struct {
			Typename string `json:"__typename"`
			ID       string
		}
	}
	s.ask(token, `query($id: ID!) { node(id: $id) { __typename id } }`, map[string]any{"id": nodeID}).into(s.t, &data)
	if data.Node == nil || data.Node.ID != nodeID {
		return ""
	}
	return data.Node.Typename
}

func TestWhatWaitsForOperatorsIsListedInPagesWithTotalsAndFoundByID(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker") // a scheduler would put the dead letters back after a minute
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 3, Stock: 9, PathTTL: 10 * time.Minute})
	buyer := made.Users[0].AccessToken
	s.poison(made.Users[0].Account, made.Users[1].Account, made.Users[2].Account)
	for i, u := range made.Users {
		if p, err := s.place(u.AccessToken, order(made.ItemID, u.Path)); err != nil || p.OrderTask == nil {
			t.Fatalf("placed %+v %v", p, err)
		}
		provider := []string{"sandbox", "other"}[i%2]
		if _, err := s.database().SQL.ExecContext(t.Context(), `INSERT INTO payment_events
			(id, provider, event_id, payment_id, kind, amount_minor, currency, provider_ref, transaction, reason, state, outcome, tries, try_at, happened_at, created_at)
			VALUES ($1, $2, $3, $1, 'SUCCEEDED', 100, 'CNY', '', $3, '', 'HELD', 'no such payment', 0, now(), now(), now())`, id.New[uuid.UUID](), provider, fmt.Sprint("tx", i)); err != nil {
			t.Fatal(err)
		}
		adjust := map[string]any{"itemId": made.ItemID, "units": 1000, "note": "more came", "idempotencyKey": fmt.Sprint("0123456789abcdef", i)}
		if p := s.mutate(ann, "adjustStock", "intervention { id }", adjust); p.why() != "" {
			t.Fatal(p.why())
		}
	}
	for field, c := range map[string]struct {
		node, filter string
		matching     int
	}{
		"deadLetters":   {"DeadLetter", "", 3},
		"heldPayments":  {"HeldPayment", `, provider: "sandbox"`, 2},
		"interventions": {"Intervention", `, filter: {kind: ADJUST_STOCK, states: [REQUESTED], saleId: "` + made.SaleID + `"}`, 3},
	} {
		testenv.Eventually(t, testenv.Wait, func() bool { return s.listed(ann, field, "first: 1").TotalCount == 3 }, field+" has three")
		first := s.listed(ann, field, "first: 2")
		rest := s.listed(ann, field, `first: 2, after: "`+first.PageInfo.EndCursor+`"`)
		if len(first.Edges) != 2 || !first.PageInfo.HasNextPage || len(rest.Edges) != 1 || rest.PageInfo.HasNextPage || rest.TotalCount != 3 {
			t.Errorf("%s: %+v, then %+v", field, first, rest)
		}
		seen := map[string]bool{}
		for _, e := range append(first.Edges, rest.Edges...) {
			seen[e.Node.ID] = true
			if got := s.typeOf(ann, e.Node.ID); got != c.node {
				t.Errorf("%s is found as %q, want %s", e.Node.ID, got, c.node)
			}
			if got := s.typeOf(buyer, e.Node.ID); got != "" {
				t.Errorf("a buyer finds %s as %s", e.Node.ID, got)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%s: %d different nodes", field, len(seen))
		}
		if got := s.listed(ann, field, "first: 9"+c.filter); got.TotalCount != c.matching || len(got.Edges) != c.matching {
			t.Errorf("%s with a filter: %+v", field, got)
		}
	}
	if got := s.listed(ann, "interventions", `first: 9, filter: {states: [DONE]}`); got.TotalCount != 0 || len(got.Edges) != 0 {
		t.Errorf("of another state: %+v", got)
	}
}
