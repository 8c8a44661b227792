package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"seckill/internal/app"
	"seckill/internal/gate/audit"
	"seckill/internal/platform/config"
)

type logCmd struct {
	Export logExportCmd `cmd:"" help:"Write the log of a sale as a file that can be checked."`
	Verify logVerifyCmd `cmd:"" help:"Check an exported log, without any service."`
}

type logExportCmd struct {
	Sale string `required:"" placeholder:"ID" help:"The sale: sal_…"`
	Out  string `short:"o" placeholder:"FILE" help:"Where to write; standard output without it."`
}

func (logExportCmd) Help() string {
	return "Writes every act on the sale and every move of its stock as JSON lines, with the seals that the scheduler wrote: hashes over everything before them. " +
		"Keep the head that it prints: `seckill log verify --head` then finds any later change of what the file holds.\n\n" +
		examples(
			"seckill log export --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --out sale.jsonl",
		)
}

func (l logExportCmd) Run(c *call) (err error) {
	sale, err := saleOf(c, l.Sale, config.NeedDatabase)
	if err != nil {
		return err
	}
	out := c.env.stdout
	if l.Out != "" {
		file, err := os.OpenFile(l.Out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	buffered := bufio.NewWriter(out)
	end, err := app.ExportLog(c.ctx, c.cfg, sale, buffered)
	if err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.env.stderr, "%d entries, head %s\n", end.Entries, end.Head)
	return err
}

type logVerifyCmd struct {
	File string `arg:"" help:"Exported log; - = standard input."`
	Head string `placeholder:"HASH" help:"A head that was noted earlier: it must be in the log."`
	JSON bool   `help:"Print {saleId,ok,findings,entries,seals,unsealed,head,sealed,late,headChecked}."`
}

func (logVerifyCmd) Help() string {
	return "Computes the chain of hashes again and compares it with every seal, checks the order of the entries, and adds the moves up to the units of each item. " +
		"Exit 1 when an entry was changed, removed, inserted or moved. Detecting a rewritten or truncated log requires --head.\n\n" + examples(
		"seckill log verify sale.jsonl",
		"seckill log verify sale.jsonl --head 3b5d…",
	)
}

func (l logVerifyCmd) Run(c *call) error {
	var in io.Reader = c.env.stdin
	if l.File != "-" {
		file, err := os.Open(l.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // only read
		in = file
	}
	v, err := audit.Verify(in, l.Head)
	if err != nil {
		return fmt.Errorf("%s: %w", l.File, err)
	}
	if l.JSON {
		err = printJSON(c.env.stdout, v)
	} else {
		err = printVerification(c.env.stdout, v)
	}
	if err == nil && !v.OK {
		return errFinding
	}
	return err
}

// maxLate is how many late entries are listed.
const maxLate = 10

func printVerification(out io.Writer, v *audit.Verification) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "sale\t%s\n", v.SaleID)
	fmt.Fprintf(w, "entries\t%d, of which %d are after the last of %d seals\n", v.Entries, v.Unsealed, v.Seals)
	fmt.Fprintf(w, "sealed\t%s\n", v.Sealed)
	fmt.Fprintf(w, "head\t%s\n", v.Head)
	if len(v.Late) > 0 {
		fmt.Fprintf(w, "late\t%d entries came more than a minute after they were made: %s\n", len(v.Late),
			strings.Join(v.Late[:min(len(v.Late), maxLate)], ", "))
	}
	for _, finding := range v.Findings {
		fmt.Fprintf(w, "finding\t%s\n", finding)
	}
	verdict := "the log is intact"
	if !v.HeadChecked {
		verdict = "the log is internally consistent. Without --head a rewritten or truncated log cannot be detected: " +
			"compare the head with a copy kept outside the database"
	}
	if !v.OK {
		verdict = fmt.Sprintf("the log is not intact: %d findings", len(v.Findings))
	}
	fmt.Fprintf(w, "verdict\t%s\n", verdict)
	return w.Flush()
}
