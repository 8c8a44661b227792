package main

import (
	"errors"
	"fmt"
	"slices"

	"seckill/internal/app"
	"seckill/internal/buy/order"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

type orderCmd struct {
	Expire orderExpireCmd `cmd:"" help:"Expire an unpaid order whose money will not come; its units are free at once."`
}

type orderExpireCmd struct {
	Order    string `arg:"" name:"id" help:"Id of the order (ord_…)."`
	Operator string `required:"" placeholder:"ACCOUNT" help:"Account of the operator in whose name it is logged."`
	Note     string `required:"" placeholder:"TEXT" help:"Why; the buyer sees it."`
}

func (orderExpireCmd) Help() string {
	return "For a payment provider that is gone: without this, such an order expires an hour after its deadline. A provider that " +
		"answers is asked first, and an order that turns out to be paid stays. Money that comes later takes the units again " +
		"while some are left, and goes back otherwise.\n\n" + examples(
		"seckill order expire ord_… --operator ops@example.com --note 'the bank closed'",
	)
}

func (e orderExpireCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys); err != nil {
		return err
	}
	orderID, err := id.ParseOrder(e.Order)
	if err != nil {
		return fmt.Errorf("%s is no id of an order: they begin with ord_", e.Order)
	}
	o, err := app.ExpireOrder(c.ctx, c.cfg, app.ExpireOrderInput{Order: orderID, Account: e.Operator, Note: e.Note},
		silent())
	if err != nil {
		return e.explain(o, err)
	}
	_, err = fmt.Fprintf(c.env.stdout, "order %s is %s\n", o.Number, o.Status)
	return err
}

// explain rewords a refusal for the command line.
func (e orderExpireCmd) explain(o *order.Order, err error) error {
	if bad, ok := errors.AsType[fault.BadField](err); ok && slices.Equal(bad.At, []string{"note"}) {
		return errors.New("--note: give 1 to 200 characters")
	}
	switch {
	case fault.CodeOf(err) == fault.Forbidden:
		return fmt.Errorf("--operator %s: this user is no operator", e.Operator)
	case fault.ReasonOf(err) == fault.Unknown:
		return fmt.Errorf("there is no order %s", e.Order)
	case fault.ReasonOf(err) == fault.Conflict && o != nil && o.Status == order.PendingPayment:
		return fmt.Errorf("order %s is the operator's own, or its sale is settled: another operator has to do it", e.Order)
	case fault.ReasonOf(err) == fault.Conflict && o != nil:
		return fmt.Errorf("order %s is %s: only unpaid orders expire", e.Order, o.Status)
	}
	return err
}
