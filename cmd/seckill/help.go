package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// shown lists, by command, the groups and settings in its help. Every command accepts all
// settings; the help of serve lists them all.
var shown = map[string][]string{
	"":       {},
	"serve":  {"general", "services", "server", "shop", "accounts", "mail", "gate", "payments"},
	"config": {"general", "services", "server", "shop", "accounts", "mail", "gate", "payments"},
	"demo": {
		"config", "http-addr", "admin-addr", "payment-window", "waitlist-offer", "pow-max", "limits", "log-level",
		"log-format",
	},
	"migrate": {
		"config", "database-url", "log-level", "log-format",
	},
	"seed": {
		"config", "profile", "services", "jwt-key", "path-ttl", "payment-window", "permit-ratio",
	},
	"user":        {"config", "services"},
	"token":       {"config", "services"},
	"webhooks":    {"config", "database-url", "jwt-key"},
	"events":      {"config", "database-url", "jwt-key"},
	"sales":       {"config", "database-url"},
	"audit":       {"config", "services"},
	"log":         {"config", "database-url"},
	"report":      {"config", "services"},
	"export":      {"config", "database-url"},
	"deadletters": {"config", "services"},
	"order":       {"config", "services", "jwt-key"},
	"payments":    {"config", "services", "jwt-key", "payments"},
	"doctor":      {"general", "services", "jwt-key"},
	"drill":       {"config", "services", "jwt-key", "profile", "permit-ratio"},
	"push-key":    {},
	"capacity":    {},
	"schema":      {},
	"version":     {},
	"completion":  {},
}

// printHelp prints kong's help without the settings that are irrelevant for the command.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	command := ""
	if node := ctx.Selected(); node != nil {
		command = strings.Fields(node.Path())[0]
	}
	list := shown[command]
	for _, flag := range ctx.Model.Flags {
		if flag.Group == nil || flag.Hidden {
			continue
		}
		flag.Hidden = !slices.Contains(list, flag.Name) && !slices.Contains(list, flag.Group.Key)
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// examples formats the examples of a command's help.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n  ")
}
