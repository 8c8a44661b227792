package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"seckill/internal/app"
	"seckill/internal/config"
	"seckill/internal/seed"
)

type seedCmd struct {
	Users   int           `default:"100" help:"Accounts that can buy, with one shared password."`
	Stock   int           `default:"100" help:"Units of the one item on sale."`
	OpensIn time.Duration `default:"0s" help:"When the sale opens, from now."`
	Lasts   time.Duration `default:"1h" help:"How long it is open."`
	Limit   int           `default:"1" help:"Most units that one person may hold."`
	Paths   bool          `help:"Issue each account's path as well, so that load tools begin at placeOrder. Refused in production."`
	JSON    bool          `help:"Print {saleId,itemId,users:[{account,password,accessToken,path}]}."`
}

// Help returns the examples.
func (seedCmd) Help() string {
	return "Makes an approved sale, loads it into Redis, and makes its buyers. Nothing that is there is changed.\n\n" + examples(
		"seckill seed",
		"seckill seed --users 2000 --stock 200 --opens-in 30s --json > sale.json",
		"seckill seed --profile development --users 5000 --paths --path-ttl 10m --json",
	)
}

// Run seeds.
func (s seedCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys); err != nil {
		return err
	}
	in := seed.Input{
		Users: s.Users, Stock: s.Stock, OpensIn: s.OpensIn, Lasts: s.Lasts,
		PurchaseLimit: s.Limit, PaymentWindow: c.cfg.PaymentWindow,
	}
	if s.Paths {
		if c.cfg.Production() {
			return errors.New("--paths goes around the captcha, which production does not allow: set SECKILL_PROFILE to development")
		}
		in.PathTTL = c.cfg.PathTTL
	}
	result, err := app.Seed(c.ctx, c.cfg, in, c.logger())
	if err != nil {
		return err
	}
	if s.JSON {
		return json.NewEncoder(c.env.stdout).Encode(result)
	}
	_, err = fmt.Fprintf(c.env.stdout, "sale   %s\nitem   %s\nstock  %d\nusers  %d\n", result.SaleID, result.ItemID, s.Stock, len(result.Users))
	if err == nil && len(result.Users) > 0 {
		_, err = fmt.Fprintf(c.env.stdout, "first  %s, password %s (--json lists all)\n", result.Users[0].Account, result.Users[0].Password)
	}
	return err
}
