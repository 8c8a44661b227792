package main

import (
	"fmt"
	"text/tabwriter"

	"seckill/graph"
	"seckill/internal/app"
	"seckill/internal/platform/config"
	"seckill/internal/platform/telemetry"
)

type schemaCmd struct {
	Print schemaPrintCmd `cmd:"" help:"Print the schema in GraphQL's own language."`
}

type schemaPrintCmd struct {
	For graph.Part `enum:"customer,staff,service," default:"" placeholder:"WHO" help:"Only the part for ${enum} (service tokens), with the types that it leads to."`
}

func (schemaPrintCmd) Help() string {
	return examples("seckill schema print > schema.graphqls", "seckill schema print --for customer > buyers.graphqls")
}

func (s schemaPrintCmd) Run(c *call) error { return app.PrintSchema(c.env.stdout, s.For) }

type configCmd struct {
	Print configPrintCmd `cmd:"" help:"List every setting, its value, and where that comes from."`
}

type configPrintCmd struct {
	JSON bool `help:"Print JSON, with help and defaults."`
}

func (configPrintCmd) Help() string {
	return "Flags win over the environment, the environment over the file, the file over the default. Secrets are masked.\n\n" +
		examples("seckill config print", "SECKILL_HTTP_ADDR=:9000 seckill config print --json")
}

func (p configPrintCmd) Run(c *call) error {
	if p.JSON {
		return printJSON(c.env.stdout, c.settings)
	}
	w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "SETTING\tVALUE\tFROM\n")
	for _, s := range c.settings {
		value := s.Value
		if s.Flag == "jwt-key" {
			if current, _, err := c.cfg.SigningKeys(); err == nil {
				value += " (key id " + current.ID + ")"
			}
		}
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", config.Name(s.Flag), value, s.Origin)
	}
	return w.Flush()
}

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

func (versionCmd) Help() string { return examples("seckill version", "seckill version --json") }

func (v versionCmd) Run(c *call) error {
	b := telemetry.ReadBuild()
	if v.JSON {
		return printJSON(c.env.stdout, b)
	}
	changed := ""
	if b.Modified {
		changed = ", changed since"
	}
	_, err := fmt.Fprintf(c.env.stdout, "seckill %s (commit %s%s, %s, %s)\n", b.Version, b.Commit, changed, b.Go,
		b.Platform)
	return err
}
