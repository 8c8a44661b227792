package graph

import (
	"net/http"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"seckill/internal/buy/order"
)

func TestAnOrderOfOneUnitNamesNoUnits(t *testing.T) {
	t.Parallel()
	chinese := graphql.WithOperationContext(t.Context(), &graphql.OperationContext{Headers: http.Header{"Accept-Language": {"zh-CN"}}})
	for _, c := range []struct {
		quantity, units  int
		english, chinese string
	}{
		{1, 1, "The money went back.", "款项已退回。"},
		{3, 0, "The money went back.", "款项已退回。"}, // written by an earlier release
		{3, 2, "The money of 2 of 3 units went back.", "款项已退回：2 件（共 3 件）。"},
		{3, 3, "The money of all 3 units went back.", "款项已退回：全部 3 件。"},
	} {
		o, e := &order.Order{Quantity: c.quantity}, order.Entry{Code: order.CodeRefunded, Units: c.units}
		if got := remark(t.Context(), o, e); got != c.english {
			t.Errorf("%q, want %q", got, c.english)
		}
		if got := remark(chinese, o, e); got != c.chinese {
			t.Errorf("%q, want %q", got, c.chinese)
		}
	}
}
