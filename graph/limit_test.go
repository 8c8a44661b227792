package graph_test

import (
	"testing"

	"seckill/graph/generated"
	"seckill/internal/buy/checkout"
)

func TestTheLimitOfPlaceOrderIsThatOfTheSchema(t *testing.T) {
	t.Parallel()
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	args := schema.Mutation.Fields.ForName("placeOrder").Directives.ForName("rateLimit").ArgumentMap(nil)
	burst, ok1 := args["burst"].(int64)
	perSecond, ok2 := args["perSecond"].(int64)
	if !ok1 || !ok2 || burst != checkout.TriesAtOnce || float64(perSecond) != checkout.TriesPerSecond {
		t.Errorf("the schema says %v, package checkout %d and %g", args, checkout.TriesAtOnce, checkout.TriesPerSecond)
	}
}
