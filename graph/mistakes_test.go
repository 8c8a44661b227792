package graph_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"seckill/internal/platform/auth"
)

// send posts a document with variables.
func send(t *testing.T, h http.Handler, document string, variables map[string]any, accept string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

func TestMistakesOfClientsAreNoFaultsOfTheServer(t *testing.T) {
	t.Parallel()
	h, _ := door(t, auth.Customer)
	null := map[string]any{"x": nil}
	for _, c := range []struct {
		document  string
		variables map[string]any
	}{
		{`query($x:Boolean=true){__typename @skip(if:$x)}`, null},
		{`query($x:Boolean=true){sales{edges @include(if:$x){cursor}}}`, null},
		{`query($x:OrderDirection=ASC){sales(orderBy:{direction:$x,field:STARTS_AT}){totalCount}}`, null},
		{`query($x:SaleSort){sales(orderBy:$x){totalCount}}`, map[string]any{"x": map[string]any{"field": "STARTS_AT", "direction": nil}}},
		{`subscription($x:Boolean=true){saleStock(saleId:"x"){kind @skip(if:$x)}}`, null},
		{`subscription{a:saleStock(saleId:"x"){kind} b:saleStock(saleId:"x"){kind}}`, nil},
		{`subscription{a:saleStock(saleId:"x"){kind} ...F} fragment F on Subscription{saleStock(saleId:"x"){kind}}`, nil},
		{`subscription{saleStock(saleId:"x")@skip(if:true){kind}}`, nil},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			answer := send(t, h, c.document, c.variables, accept)
			if !strings.Contains(answer, `"BAD_USER_INPUT"`) && !strings.Contains(answer, `"GRAPHQL_VALIDATION_FAILED"`) {
				t.Errorf("%s as %s: %.300s", c.document, accept, answer)
			}
			if accept == "text/event-stream" && !strings.HasSuffix(answer, "\n\nevent: complete\ndata:\n\n") {
				t.Errorf("%s is no stream of events: %.300s", c.document, answer)
			}
		}
	}
	if answer := send(t, h, `{nodes(ids:"sal_x"){id}}`, nil, "application/json"); strings.Contains(answer, "COMPLEXITY") {
		t.Errorf("a single id: %s", answer)
	}
}
