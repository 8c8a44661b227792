package system_test

import (
	"strings"
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// Products are secret until a sale with them is public.
func TestVisitorsSeeOnlyProductsOfPublicSales(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	operator := s.staff("operator@example.com", "OPERATOR")
	goods := s.mutate(operator, "createGoods", "goods { id }", map[string]any{"name": "Of next month", "listPrice": map[string]any{"amount": "1.00", "currencyCode": "CNY"}})
	secret, _ := goods.Goods["id"].(string)
	document := `{ goods(first: 100) { totalCount edges { node { id } } } node(id: "` + secret + `") { id } }`
	testenv.Eventually(t, testenv.Wait, func() bool {
		return strings.Count(string(s.ask(operator, document, nil).Data), secret) == 2
	}, "operators see the product")
	for who, token := range map[string]string{"a visitor": "", "a buyer": made.Users[0].AccessToken} {
		data := string(s.ask(token, document, nil).Data)
		if strings.Contains(data, secret) || !strings.Contains(data, `"gds_`) {
			t.Errorf("%s sees %s", who, data)
		}
	}
}
