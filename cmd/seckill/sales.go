package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"seckill/internal/app"
	"seckill/internal/platform/config"
)

type salesCmd struct {
	JSON bool `help:"Print JSON: [{id,status,title,startsAt,endsAt}]."`
}

func (salesCmd) Help() string {
	return "Lists all sales, the last to start first, with the ids that audit, report and export take.\n\n" +
		examples("seckill sales", "seckill sales --json")
}

// listedSale is a sale as the command prints it.
type listedSale struct {
	ID       string    `json:"id"`
	Status   string    `json:"status"`
	Title    string    `json:"title"`
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
}

func (s salesCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase); err != nil {
		return err
	}
	sales, err := app.Sales(c.ctx, c.cfg)
	if err != nil {
		return err
	}
	listed := make([]listedSale, len(sales))
	for i, v := range sales {
		listed[i] = listedSale{v.ID.Public(), string(v.Status), v.Title, v.StartsAt.UTC(), v.EndsAt.UTC()}
	}
	if s.JSON {
		return printJSON(c.env.stdout, listed)
	}
	w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "SALE\tSTATUS\tSTARTS\tENDS\tTITLE\n")
	for _, v := range listed {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.ID, v.Status, v.StartsAt.Format(time.RFC3339), v.EndsAt.Format(time.RFC3339),
			v.Title)
	}
	return w.Flush()
}
