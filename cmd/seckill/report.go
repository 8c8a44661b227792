package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"seckill/internal/app"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/staff/report"
)

type reportCmd struct {
	Sale string `required:"" placeholder:"ID" help:"The sale: sal_…"`
	HTML string `placeholder:"FILE" help:"Write the report as one page that needs nothing beside itself."`
	JSON bool   `help:"Print the report as JSON."`

	Compare  string `placeholder:"ID" help:"An earlier sale, whose figures are shown beside."`
	Language string `enum:"en,zh" default:"en" help:"Language of the page: en or zh."`
	TimeZone string `default:"UTC" placeholder:"NAME" help:"Time zone of the page, such as Asia/Shanghai."`
}

func (reportCmd) Help() string {
	return "Sell-out curve, refusals by reason, queue lag, expired and sold-again units, what operators did, and whether " +
		"everything adds up: exit 1 when it does not. Changes nothing, and may run while the sale does.\n\n" + examples(
		"seckill report --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9",
		"seckill report --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --html report.html --time-zone Asia/Shanghai",
		"seckill report --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --compare sal_01hgw2bbg0000000000000000",
		"seckill report --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --json > report.json",
	)
}

func (r reportCmd) Run(c *call) error {
	sale, err := saleOf(c, r.Sale, config.NeedDatabase, config.NeedRedis)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(r.TimeZone)
	if err != nil {
		return fmt.Errorf("--time-zone %q is not the name of a time zone, such as Asia/Shanghai", r.TimeZone)
	}
	var earlier id.Sale
	if r.Compare != "" {
		if earlier, err = id.ParseSale(r.Compare); err != nil {
			return fmt.Errorf("--compare %q is not the id of a sale: it begins with sal_", r.Compare)
		}
	}
	made, err := app.Report(c.ctx, c.cfg, sale, earlier, silent())
	if err != nil {
		return noSuchSale(err, strings.Join(strings.Fields(r.Sale+" "+r.Compare), " or "))
	}
	if r.HTML != "" {
		reader := report.Reader{Language: locale.Language(r.Language), Zone: zone}
		if err := toFile(r.HTML, func(out io.Writer) error { return made.HTML(out, reader) }); err != nil {
			return err
		}
	}
	write := made.Text
	if r.JSON {
		write = made.JSON
	}
	if err := write(c.env.stdout); err != nil {
		return err
	}
	if !made.Conserved {
		return errFinding
	}
	return nil
}

type exportCmd struct {
	Sale string `required:"" placeholder:"ID" help:"The sale: sal_…"`
	Out  string `placeholder:"FILE" help:"Write to a file instead of standard output."`
}

func (exportCmd) Help() string {
	return "Writes every order of a sale, oldest first, page by page: the sale may be as large as it likes.\n\n" +
		examples(
			"seckill export --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --out orders.csv",
			"seckill export --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 | gzip > orders.csv.gz",
		)
}

func (e exportCmd) Run(c *call) error {
	sale, err := saleOf(c, e.Sale, config.NeedDatabase)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error {
		_, err := app.Export(c.ctx, c.cfg, sale, out, c.logger())
		return err
	}
	if e.Out == "" {
		return noSuchSale(write(c.env.stdout), e.Sale)
	}
	return noSuchSale(toFile(e.Out, write), e.Sale)
}

func saleOf(c *call, text string, needs ...config.Need) (id.Sale, error) {
	sale, err := id.ParseSale(text)
	if err != nil {
		return id.Sale{}, fmt.Errorf("--sale %q is not the id of a sale: it begins with sal_", text)
	}
	return sale, c.cfg.Validate(needs...)
}

func noSuchSale(err error, text string) error {
	if errors.Is(err, report.ErrUnknownSale) {
		return fmt.Errorf("there is no sale %s", text)
	}
	return err
}

// silent returns a logger for commands that print only their output.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// toFile writes a complete file, or leaves none on an error.
func toFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(name)
		}
	}()
	out := bufio.NewWriter(f)
	if err := write(out); err != nil {
		return err
	}
	return out.Flush()
}
