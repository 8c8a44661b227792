package money_test

import (
	"fmt"

	"seckill/internal/platform/money"
)

func ExampleParse() {
	price, err := money.Parse("1299.00", "CNY")
	fmt.Println(price, price.Minor, err)
	fmt.Println(price.Times(2))

	_, err = money.Parse("1299.5", "JPY")
	fmt.Println(err)
	// Output:
	// CNY 1299.00 129900 <nil>
	// CNY 2598.00
	// read amount: 1299.5 has more decimals than JPY
}
