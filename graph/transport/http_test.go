package transport_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/graph/guard"
	"seckill/graph/transport"
	"seckill/internal/platform/fault"
)

func TestAnswersAQueryInOnePieceOfKnownLength(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	a := f.query(`query($n: String){hello(name:$n)}`, `{"n":"you"}`)
	a.expect(t, 200, `{"data":{"hello":"hello you"},"extensions":{"cost":{"requestedQueryCost":0,"maximumAvailable":5000}}}`)
	if a.header.Get("Content-Length") == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers: %v", a.header)
	}
}

func TestTakesWholeNumbersInVariables(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	const doc = `query($n: Int!){count(n:$n)}`
	f.query(doc, `{"n":2147483647}`).contains(t, 200, `{"count":2147483647}`)
	for text, n := range map[string]string{"2.0": "2", "1e3": "1000", "12.5e1": "125", "-0.0": "0", "2147483647.000": "2147483647"} {
		f.query(doc, `{"n":`+text+`}`).contains(t, 200, `{"count":`+n+`}`)
	}
	// A message shows the number that was sent, or none.
	for _, text := range []string{"2.5", "1e400", "99999999999999999999", "1e-1"} {
		f.query(doc, `{"n":`+text+`}`).contains(t, 200, `"code":"BAD_USER_INPUT"`)
		f.query(doc, `{"n":`+text+`}`).contains(t, 200, `"The value `+text+` is not a valid Int."`)
		f.query(`mutation($i: SetInput!){set(input:$i){ok}}`, `{"i":{"key":"k","value":`+text+`}}`).contains(t, 200, `"The value `+text+` is not a valid Int."`)
	}
	f.query(doc, `{"n":1.5}`).contains(t, 200, `"code":"BAD_USER_INPUT"`)
	f.query(doc, `{"n":2147483648}`).contains(t, 200, `"code":"BAD_USER_INPUT"`)
	f.query(doc, `{"n":"7"}`).contains(t, 200, `"code":"BAD_USER_INPUT"`)
	f.query(`{count(n:2147483648)}`, "").contains(t, 200, `"code":"GRAPHQL_VALIDATION_FAILED"`)
	f.query(`mutation($i: SetInput!){set(input:$i){ok}}`, `{"i":{"key":"k","value":7}}`).contains(t, 200, `{"ok":true}`)
}

func TestNegotiatesMediaTypesAndStatus(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	for _, c := range []struct {
		name, accept, body, mediaType string
		status                        int
	}{
		{"no accept", "", `{"query":"{hello}"}`, "application/json", 200},
		{"anything", "*/*", `{"query":"{hello}"}`, "application/json", 200},
		{"apollo", "application/graphql-response+json,application/json;q=0.9", `{"query":"{hello}"}`, "application/graphql-response+json", 200},
		{"urql", "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed", `{"query":"{hello}"}`, "application/graphql-response+json", 200},
		{"prefers json", "application/graphql-response+json;q=0.1, application/json", `{"query":"{"}`, "application/json", 200},
		{"parse error, json", "application/json", `{"query":"{"}`, "application/json", 200},
		{"parse error, graphql", "application/graphql-response+json", `{"query":"{"}`, "application/graphql-response+json", 400},
		{"unknown field, graphql", "application/graphql-response+json", `{"query":"{nope}"}`, "application/graphql-response+json", 400},
		{"field error, graphql", "application/graphql-response+json", `{"query":"{fail(code:\"TIMEOUT\")}"}`, "application/graphql-response+json", 200},
		{"not JSON, json", "application/json", `{`, "application/json", 400},
	} {
		a := f.post(c.body, header("Accept", c.accept))
		if a.status != c.status || !strings.HasPrefix(a.header.Get("Content-Type"), c.mediaType+";") {
			t.Errorf("%s: %d %s", c.name, a.status, a.header.Get("Content-Type"))
		}
		if c.status == 400 && strings.Contains(a.body, `"data"`) {
			t.Errorf("%s: data beside a request error: %s", c.name, a.body)
		}
	}
}

func TestRefusesBodiesItCannotReadWithoutEcho(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	const marker = "s3cr3t-marker"
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"empty", ``, 400},
		{"not JSON", `{"query":"` + marker, 400},
		{"trailing text", `{"query":"{hello}"} ` + marker, 400},
		{"an array", `["` + marker + `"]`, 400},
		{"query is a number", `{"query":5,"x":"` + marker + `"}`, 400},
		{"variables are a list", `{"query":"{hello}","variables":["` + marker + `"]}`, 400},
		{"no query", `{"` + marker + `":1}`, 400},
		{"not UTF-8", "{\"query\":\"{hello}\",\"x\":\"" + marker + "\xff\"}", 400},
		{"too deep", `{"query":"{hello}","variables":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, 400},
		{"too large", `{"query":"{hello}","x":"` + marker + strings.Repeat("x", 32<<10) + `"}`, 413},
	} {
		a := f.post(c.body)
		if a.status != c.status || strings.Contains(a.body, marker) || !strings.Contains(a.body, `"code":"BAD_USER_INPUT"`) {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
	}
	f.post(`query=`+marker, header("Content-Type", "application/x-www-form-urlencoded")).contains(t, 415, "application/json")
	f.post(`{"query":"{hello}"}`, header("Content-Type", "application/json; charset=latin1")).contains(t, 415, "application/json")
	a := f.post("\x1f\x8b"+marker, header("Content-Encoding", "gzip"))
	a.contains(t, 415, "compressed")
	if a.header.Get("Accept-Encoding") != "identity" {
		t.Errorf("the accepted types are not listed: %v", a.header)
	}
	f.post(`{"query":"{hello}"}`, header("Content-Encoding", "identity")).contains(t, 200, "hello")
	f.do(http.MethodPut, "/graphql", "").contains(t, 405, "POST")
	f.do(http.MethodPost, "/graphql", "--x", header("Content-Type", "multipart/form-data; boundary=x")).contains(t, 415, "application/json")
}

func TestTooLargeChunkedBodyIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	a := f.post(`{"query":"{hello}","x":"`+strings.Repeat("x", 33<<10)+`"}`, func(r *http.Request) { r.ContentLength = -1 })
	a.contains(t, 413, "too large")
}

func TestInvalidTokenIsNeverAnonymous(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	f.query(`{viewer}`, "").contains(t, 200, `{"viewer":null}`)
	f.query(`{viewer}`, "", header("Authorization", "Bearer user:ann")).contains(t, 200, `{"viewer":"ann"}`)
	for _, token := range []string{"Bearer forged", "Bearer ", "Basic dTpw", "Bearer"} {
		f.query(`{viewer}`, "", header("Authorization", token)).contains(t, 200, `"code":"UNAUTHENTICATED"`)
		a := f.query(`{viewer}`, "", header("Authorization", token), wantGraphQL)
		a.contains(t, 401, `"code":"UNAUTHENTICATED"`)
		if a.header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(a.body, "data") {
			t.Errorf("%q: %v %s", token, a.header, a.body)
		}
	}
}

func TestGetRunsQueriesOnly(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	get := func(q string, edits ...edit) answer {
		return f.do(http.MethodGet, "/graphql?"+q, "", edits...)
	}
	v := url.Values{"query": {"query A($n:Int!){count(n:$n)} query B{hello}"}, "operationName": {"A"}, "variables": {`{"n":3}`}}
	get(v.Encode()).contains(t, 200, `{"count":3}`)
	v.Del("operationName")
	get(v.Encode()).contains(t, 200, "several operations")
	a := get(url.Values{"query": {`mutation{set(input:{key:"k",value:1}){ok}}`}}.Encode())
	a.contains(t, 405, "Mutations")
	if a.header.Get("Allow") != "POST" || f.resolver.Sets.Load() != 0 {
		t.Errorf("a mutation ran by GET: %v", a.header)
	}
	get(url.Values{"query": {`subscription{idle}`}}.Encode()).contains(t, 400, "WebSocket")
	get(url.Values{"query": {`{hello}`}, "variables": {"{"}}.Encode()).contains(t, 400, "variables")
	get("").contains(t, 400, "query")
}

func TestProductionGetsTrustedDocumentsOnly(t *testing.T) {
	t.Parallel()
	const trusted = `{hello}`
	f := setup(t, setupOptions{production: true, guard: guard.Options{Trusted: guard.NewManifest(trusted), TrustedOnly: true}})
	get := func(key, value string) answer {
		return f.do(http.MethodGet, "/graphql?"+url.Values{key: {value}}.Encode(), "")
	}
	get("query", trusted).contains(t, 200, `"hello"`)
	get("documentId", "sha256:"+guard.Hash(trusted)).contains(t, 200, `"hello"`)
	get("extensions", `{"persistedQuery":{"version":1,"sha256Hash":"`+guard.Hash(trusted)+`"}}`).contains(t, 200, `"hello"`)
	get("query", `{viewer}`).contains(t, 200, "PERSISTED_QUERY_ONLY")
	f = setup(t, setupOptions{production: true})
	f.do(http.MethodGet, "/graphql?query={hello}", "").contains(t, 405, "POST")
	f.do(http.MethodGet, "/graphql?query={hello}", "", header("Accept", "text/event-stream")).contains(t, 405, "POST")
}

func TestPanicsBecomeInternalErrors(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	a := f.query(`{panic hello}`, "")
	a.contains(t, 200, `"code":"INTERNAL"`)
	a.contains(t, 200, `"hello":"hello"`)
	if strings.Contains(a.body, "purpose") {
		t.Errorf("the panic is shown: %s", a.body)
	}
}

func TestProductionErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{production: true})
	const marker = "s3cr3tmarker"
	for name, a := range map[string]answer{
		"unknown field":  f.query(`{`+marker+`}`, ""),
		"parse error":    f.query(`{hello(`+marker, ""),
		"wrong variable": f.query(`query($n:Int!){count(n:$n)}`, `{"n":"`+marker+`"}`),
		"unknown member": f.query(`query($b:ThingLookup!){thing(by:$b){id}}`, `{"b":{"`+marker+`":1}}`),
		"operation name": f.post(`{"query":"query A{hello}","operationName":"` + marker + `"}`),
		"introspection":  f.query(`{__type(name:"`+marker+`"){name}}`, ""),
		"token":          f.query(`{viewer}`, "", header("Authorization", "Bearer "+marker)),
		"suggestion":     f.query(`{helo}`, ""),
	} {
		if strings.Contains(a.body, marker) || !strings.Contains(a.body, `"code":`) || strings.Contains(a.body, "Did you mean") {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestOneOfIsEnforcedInVariables(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	const doc = `query($b: ThingLookup!){thing(by:$b){id}}`
	f.query(doc, `{"b":{"id":"7"}}`).contains(t, 200, `{"id":"7"}`)
	for _, bad := range []string{`{}`, `{"id":"1","name":"n"}`, `{"id":null}`, `{"id":"1","name":null}`} {
		f.query(doc, `{"b":`+bad+`}`).contains(t, 200, `"code":"BAD_USER_INPUT"`)
	}
	f.query(`query($id: ID!){thing(by:{id:$id}){id}}`, `{"id":"7"}`).contains(t, 200, `{"id":"7"}`)
	f.query(`query($id: ID){thing(by:{id:$id}){id}}`, `{"id":null}`).contains(t, 200, `"errors"`)
	f.query(`query($id: ID!, $n: String!){thing(by:{id:$id, name:$n}){id}}`, `{"id":"7","n":"x"}`).contains(t, 200, `"errors"`)
}

// When a client disconnects during a query, no response is written and all its resources
// are freed.
func TestClientThatLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	var running, served atomic.Int64
	f := setup(t, setupOptions{transport: transport.Options{Timeout: time.Hour}, configure: func(s *http.Server) {
		inner := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Add(-1)
			inner.ServeHTTP(w, r)
			served.Add(1)
		})
	}})
	for range 10 {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL+"/graphql", strings.NewReader(`{"query":"{slow}"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := f.client.Do(r); err == nil {
				_ = resp.Body.Close()
				t.Errorf("answered %d", resp.StatusCode)
			}
		}()
		f.eventually("the query runs", func() bool { return running.Load() == 1 })
		leave()
		<-gone
		f.eventually("the query ends", func() bool { return running.Load() == 0 })
	}
	if n := served.Load(); n != 10 {
		t.Errorf("%d of 10 handlers returned; the others panicked", n)
	}
}

func TestOtherMethodsHaveNothingToSay(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	f.do(http.MethodHead, "/graphql", "").expect(t, 405, "")
	f.do(http.MethodOptions, "/graphql", "").expect(t, 204, "")
}

func TestQueriesEndInTime(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{transport: transport.Options{Timeout: 50 * time.Millisecond}})
	const timeout = `"code":"TIMEOUT"`
	f.query(`{slow}`, "").contains(t, 200, timeout)
	e := f.events(`{slow}`)
	if got := e.next(); !strings.Contains(got, timeout) {
		t.Errorf("events: %s", got)
	}
	e.expect(`event: complete|data:`)
	c := f.open("")
	c.subscribe("1", `{slow}`)
	c.expectPart(timeout)
	c.send(`{"type":"ping"}`)
	c.expect(`{"type":"pong"}`)
}

func TestFaultsSayWhenToComeBack(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{transport: transport.Options{Authenticate: func(context.Context, string) (transport.Caller, error) {
		return transport.Caller{}, &fault.Error{Code: fault.Overloaded, Message: "Later.", RetryAfter: 1500 * time.Millisecond}
	}}})
	a := f.query(`{hello}`, "", header("Authorization", "Bearer x"), wantGraphQL)
	a.contains(t, 503, "OVERLOADED")
	if a.header.Get("Retry-After") != "2" {
		t.Errorf("%v", a.header)
	}
}

func TestSpentBudgetsSayWhenToComeBack(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{guard: guard.Options{Spend: func(context.Context, int64) (guard.Budget, error) {
		return guard.Budget{}, &fault.Error{Code: fault.RateLimited, Message: "Spent.", RetryAfter: 1500 * time.Millisecond}
	}}})
	const refusal = `{"errors":[{"message":"Spent.","extensions":{"code":"RATE_LIMITED","retryAfterMs":1500}}]}`
	for status, accept := range map[int]string{200: "application/json", 429: "application/graphql-response+json"} {
		a := f.query(`{hello}`, "", header("Accept", accept))
		a.expect(t, status, refusal)
		if a.header.Get("Retry-After") != "2" {
			t.Errorf("%s: %v", accept, a.header)
		}
	}
	f.events(`{hello}`).expect(`event: next|data: ` + refusal)
	c := f.open("")
	c.subscribe("1", `{hello}`)
	c.expectPart(`"retryAfterMs":1500`)
}

func TestARequestThatIsRefusedUnreadIsCharged(t *testing.T) {
	t.Parallel()
	var spent atomic.Int64
	f := setup(t, setupOptions{guard: guard.Options{Spend: func(_ context.Context, cost int64) (guard.Budget, error) {
		if spent.Add(cost) > 4000 {
			return guard.Budget{}, &fault.Error{Code: fault.RateLimited, Message: "Spent.", RetryAfter: 1500 * time.Millisecond}
		}
		return guard.Budget{}, nil
	}}})
	f.post(`{"query":"\n`, wantGraphQL).contains(t, 400, "BAD_USER_INPUT")
	f.query(`{hello`, "", wantGraphQL).contains(t, 400, "GRAPHQL_PARSE_FAILED")
	f.query(`{nothing}`, "", wantGraphQL).contains(t, 400, "GRAPHQL_VALIDATION_FAILED")
	c := f.dial(dialOptions{})
	c.send(`{"type":`)
	c.expectClose(4400, "Invalid message")
	a := f.post(`{`, wantGraphQL)
	a.contains(t, 429, "RATE_LIMITED")
	if a.header.Get("Retry-After") != "2" {
		t.Errorf("%v", a.header)
	}
	f.post(`{`, header("Accept", "text/event-stream")).contains(t, 429, "RATE_LIMITED")
}

func TestValuesAreQuotedInNoProfile(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	const marker = "s3cr3tmarker"
	for name, a := range map[string]answer{
		"enum":           f.query(`query($k:__TypeKind){hello}`, `{"k":"`+marker+`"}`),
		"number":         f.query(`query($n:Int!){count(n:$n)}`, `{"n":"`+marker+`"}`),
		"operation name": f.post(`{"query":"query A{hello}","operationName":"` + marker + `"}`),
		"token":          f.query(`{viewer}`, "", header("Authorization", "Bearer "+marker)),
		"a string":       f.query(`"`+marker+`"`, ""),
		"a block":        f.query(`{hello """`+marker+`"""}`, ""),
		"an expectation": f.query(`{hello(name "`+marker+`")}`, ""),
		"an escape":      f.query(`{hello(name: "\u00`+marker+`")}`, ""),
		"other escapes":  f.query(`{hello(name: "\`+marker+`")}`, ""),
		"literal":        f.query(`{count(n:"`+marker+`")}`, ""),
		"literal object": f.query(`{thing(by:"`+marker+`"){id}}`, ""),
		"literal list":   f.query(`{count(n:["`+marker+`"])}`, ""),
		"literal enum":   f.query(`query($k:__TypeKind="`+marker+`"){hello}`, ""),
	} {
		if strings.Contains(a.body, marker) || !strings.Contains(a.body, `"code":`) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}
