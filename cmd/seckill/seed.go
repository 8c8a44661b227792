package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
)

type seedCmd struct {
	Users   int           `default:"100" help:"Accounts that can buy, with one shared password."`
	Stock   int           `default:"100" help:"Units of the one item on sale."`
	OpensIn time.Duration `default:"0s" help:"When the sale opens, from now."`
	Lasts   time.Duration `default:"1h" help:"How long it is open."`
	Limit   int           `default:"1" help:"Purchase limit per buyer."`
	Paths   bool          `help:"Issue a path token for each account, so that load tools begin at placeOrder. Refused in production."`
	Yes     bool          `name:"yes-make-test-buyers" help:"Make the sale and its buyers in production too."`
	Demo    bool          `help:"Make what the demo shows instead: its products, its four sales and its four accounts. Refused in production."`
	Remove  bool          `help:"Remove the sales that this command made from the shop, with their accounts and unpaid orders. Sales with orders of other accounts stay."`
	JSON    bool          `help:"Print {saleId,itemId,users:[{account,password,accessToken,path}]}; with --demo, {sales:[{saleId,title,slug,opensAt}],accounts}; with --remove, {sales,accounts,kept:[{what,why}]}."`
}

func (seedCmd) Help() string {
	return "Makes an approved sale, loads it into Redis, and makes its buyers. Nothing that is there is changed.\n\n" +
		examples(
			"seckill seed --profile development",
			"seckill seed --users 2000 --stock 200 --opens-in 30s --yes-make-test-buyers --json > sale.json",
			"seckill seed --profile development --users 5000 --paths --path-ttl 10m --json",
			"seckill seed --profile development --demo",
			"seckill seed --remove",
		)
}

func (s seedCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys); err != nil {
		return err
	}
	if s.Remove {
		return s.remove(c)
	}
	if s.Demo {
		return s.demo(c)
	}
	if c.cfg.Production() && !s.Yes {
		return errors.New("this makes a sale and buyers for tests, and the profile is production: add --yes-make-test-buyers, " +
			"or set SECKILL_PROFILE to development")
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
	_, err = fmt.Fprintf(c.env.stdout, "sale   %s\nitem   %s\nstock  %d\nusers  %d\n", result.SaleID, result.ItemID,
		s.Stock, len(result.Users))
	if err == nil && len(result.Users) > 0 {
		_, err = fmt.Fprintf(c.env.stdout, "first  %s, password %s (--json lists all)\n", result.Users[0].Account,
			result.Users[0].Password)
	}
	return err
}

// remove removes what earlier runs made. Exit 1 = something stays.
func (s seedCmd) remove(c *call) error {
	removed, err := app.Unseed(c.ctx, c.cfg, c.logger())
	if removed == nil {
		return err
	}
	if s.JSON {
		err = errors.Join(err, json.NewEncoder(c.env.stdout).Encode(removed))
	} else {
		for _, sale := range removed.Sales {
			fmt.Fprintf(c.env.stdout, "removed  %s\n", sale)
		}
		for _, kept := range removed.Kept {
			fmt.Fprintf(c.env.stdout, "kept     %s: %s\n", kept.What, kept.Why)
		}
		fmt.Fprintf(c.env.stdout, "accounts %d removed\n", removed.Accounts)
	}
	if err == nil && len(removed.Kept) > 0 {
		return errFinding
	}
	return err
}

// demoSeeded is the output of --demo --json.
type demoSeeded struct {
	Sales    []seededSale `json:"sales"` // the open sale first
	Accounts []string     `json:"accounts"`
}

type seededSale struct {
	SaleID  string    `json:"saleId"`
	Title   string    `json:"title"`
	Slug    string    `json:"slug"`
	OpensAt time.Time `json:"opensAt"`
}

func (s seedCmd) demo(c *call) error {
	if c.cfg.Production() {
		return errors.New("--demo makes an administrator whose password is public, which production does not allow: set SECKILL_PROFILE to development")
	}
	made, err := app.SeedDemo(c.ctx, c.cfg, c.logger())
	if err != nil {
		return err
	}
	var out demoSeeded
	for _, each := range []seed.DemoSale{made.Open, made.Soon, made.ChineseOpen, made.ChineseSoon} {
		out.Sales = append(out.Sales, seededSale{SaleID: each.Sale.Public(), Title: each.Title, Slug: each.Slug,
			OpensAt: each.Opens.UTC()})
	}
	for _, u := range made.Users {
		out.Accounts = append(out.Accounts, u.Account)
	}
	if s.JSON {
		return json.NewEncoder(c.env.stdout).Encode(out)
	}
	for _, each := range out.Sales {
		fmt.Fprintf(c.env.stdout, "sale      %s  %s, opens at %s\n", each.SaleID, each.Title, each.OpensAt.Local().
			Format(time.DateTime))
	}
	for _, account := range out.Accounts {
		fmt.Fprintf(c.env.stdout, "account   %s\n", account)
	}
	_, err = fmt.Fprintf(c.env.stdout, "password  %s (of all)\n", seed.DemoPassword)
	return err
}
