package operator_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
)

func TestCodesAreMadeReadAndRevoked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 5)
		in := operator.ActInput{By: ann, Sale: v.ID, Note: "for the press"}
		valid := operator.CodesInput{ActInput: in, Source: "press", Codes: 3, Uses: 1, Expires: e.clock.Now().Add(time.Hour)}
		b, err := e.ops.CreateCodes(t.Context(), valid)
		if err != nil || b.Number != 1 || b.Codes != 3 || !b.Expires.Equal(valid.Expires) {
			t.Fatalf("%+v %v", b, err)
		}
		bad := valid
		bad.Source, bad.Codes, bad.Uses, bad.Expires = "The Press", 0, access.MaxUses+1, e.clock.Now()
		if _, err := e.ops.CreateCodes(t.Context(), bad); fault.ReasonOf(err) != fault.InvalidInput || strings.Count(err.Error(), "invalid input") != 4 {
			t.Errorf("bad input: %v", err)
		}
		if _, err := e.ops.CreateCodes(t.Context(), operator.CodesInput{ActInput: operator.ActInput{By: buyer, Sale: v.ID}, Source: "press", Codes: 1, Uses: 1}); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("a buyer: %v", err)
		}
		codes, err := e.ops.Codes(t.Context(), ann, operator.BatchRef{Sale: v.ID, Number: 1}, 1, 100)
		if err != nil || len(codes) != 2 || codes[0].Number != 2 || codes[0].Text == codes[1].Text {
			t.Fatalf("%+v %v", codes, err)
		}
		for range 2 {
			if b, err = e.ops.RevokeCodes(t.Context(), operator.RevokeInput{ActInput: in, Batch: 1, Number: 2}); err != nil || len(b.RevokedCodes) != 1 {
				t.Fatalf("%+v %v", b, err)
			}
		}
		for what, r := range map[string]operator.RevokeInput{"batch": {Batch: 2}, "number": {Batch: 1, Number: 4}} {
			r.ActInput = in
			if _, err := e.ops.RevokeCodes(t.Context(), r); fault.ReasonOf(err) != fault.Unknown {
				t.Errorf("an unknown %s: %v", what, err)
			}
		}
		file := httptest.NewRecorder()
		e.ops.Downloads(func(*http.Request) (sale.Actor, error) { return ann, nil }).
			ServeHTTP(file, httptest.NewRequest(http.MethodGet, operator.CodesExportPath+"?batch=1&sale="+v.ID.Public(), http.NoBody))
		text := file.Body.String()
		if lines := strings.Count(text, "\n"); file.Code != http.StatusOK || lines != 3 || strings.Contains(text, codes[0].Text) || !strings.Contains(text, "3,"+codes[1].Text+",press,1") {
			t.Errorf("%d %s", file.Code, text)
		}
		missing := httptest.NewRecorder()
		e.ops.Downloads(func(*http.Request) (sale.Actor, error) { return ann, nil }).
			ServeHTTP(missing, httptest.NewRequest(http.MethodGet, operator.CodesExportPath+"?batch=7&sale="+v.ID.Public(), http.NoBody))
		if missing.Code != http.StatusNotFound {
			t.Errorf("a missing batch: %d", missing.Code)
		}
		lines, err := e.sales.Log(t.Context(), v.ID, 10)
		e.must(err)
		if lines[0].Act != sale.ActCodes || lines[0].Note != in.Note || !strings.Contains(lines[0].Details, `"revokedCode":2`) || lines[1].Act != sale.ActCodes ||
			!strings.Contains(lines[1].Details, `"codes":3`) {
			t.Errorf("the log has %+v", lines[:2])
		}
		var stored string
		e.must(e.db.SQL.QueryRowContext(t.Context(), "SELECT access_codes FROM sales").Scan(&stored))
		for _, code := range codes {
			if bytes.Contains([]byte(stored), []byte(code.Text)) || strings.Contains(lines[0].Details+lines[1].Details, code.Text) {
				t.Errorf("the code %d is stored", code.Number)
			}
		}
	})
}

func TestAPrivateSaleNeedsRulesThatLeaveOthersOut(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for want, rules := range map[bool]access.Rules{
		true:  {{Kind: access.ByCode, Name: "Press", Source: "press"}},
		false: {{Kind: access.List, Name: "Members", Source: "vip"}, {Kind: access.All, After: 60}},
	} {
		d := e.draft(10)
		d.Private, d.Access = true, &rules
		v, err := e.ops.CreateSale(t.Context(), ann, d)
		if (err == nil) != want || want && !v.Private {
			t.Errorf("%v: %v", rules.Texts(), err)
		}
	}
	d := e.draft(10)
	d.Private = true
	if _, err := e.ops.CreateSale(t.Context(), ann, d); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("without rules: %v", err)
	}
}
