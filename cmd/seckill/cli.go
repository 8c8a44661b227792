package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"seckill/internal/platform/config"
	"seckill/internal/platform/telemetry"
)

// errFinding ends a command whose check had findings. They are printed already.
var errFinding = errors.New("a check found something")

// cli is the command line. Every command accepts the settings as flags.
type cli struct {
	Settings config.Config `embed:""`

	Init     initCmd     `cmd:"" help:"Set up an installation: database, settings, first administrator."`
	Demo     demoCmd     `cmd:"" help:"Try everything: one process, no services needed."`
	Serve    serveCmd    `cmd:"" help:"Serve the shop on Postgres and Redis."`
	Migrate  migrateCmd  `cmd:"" help:"Bring the database up to date, or list its migrations."`
	Seed     seedCmd     `cmd:"" help:"Make a loaded sale and accounts that can buy."`
	User     userCmd     `cmd:"" help:"Manage users."`
	Sales    salesCmd    `cmd:"" help:"List the sales with their ids."`
	Audit    auditCmd    `cmd:"" help:"Check that a sale adds up in Postgres, Redis and the streams."`
	Log      logCmd      `cmd:"" help:"Export the log of a sale, chained by hashes, and check it."`
	Report   reportCmd   `cmd:"" help:"Show how a sale went, as a page, as JSON or in a few lines."`
	Export   exportCmd   `cmd:"" help:"Write the orders of a sale as CSV."`
	Drill    drillCmd    `cmd:"" help:"Put load on a running server, and check every invariant."`
	Capacity capacityCmd `cmd:"" help:"Calculate the resources for an opening, and simulate it."`
	Doctor   doctorCmd   `cmd:"" help:"Check settings and services, and print what to fix."`

	Order       orderCmd       `cmd:"" help:"Act on one order."`
	Payments    paymentsCmd    `cmd:"" help:"Compare payments with their providers."`
	DeadLetters deadLettersCmd `cmd:"" name:"deadletters" help:"Replay messages that failed permanently."`

	Webhooks webhooksCmd `cmd:"" help:"Manage the endpoints that receive events."`
	Events   eventsCmd   `cmd:"" help:"Print the events for other systems."`
	Token    tokenCmd    `cmd:"" help:"Manage service tokens."`
	PushKey  pushKeyCmd  `cmd:"" name:"push-key" help:"Make the key for notices to browsers."`

	Verify     verifyCmd     `cmd:"" help:"Check a draw or a receipt, without the shop."`
	Schema     schemaCmd     `cmd:"" help:"Show the GraphQL schema."`
	Config     configCmd     `cmd:"" help:"Show the settings."`
	Version    versionCmd    `cmd:"" help:"Show the version of this binary."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"List what may come next, for the completion scripts."`
}

// call holds the inputs of a command.
type call struct {
	ctx      context.Context // lives as long as the command
	cfg      *config.Config
	settings []config.Setting
	former   []string // see config.Source.Former
	env      environment
	kong     *kong.Context
}

// run parses the arguments, runs the command, and returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	var commands cli
	source := config.NewSource(lookupIn(env.environ))
	exited := false
	options := append(config.Options(source),
		kong.Name("seckill"),
		kong.Description("Seckill runs flash sales: a shop, a GraphQL API and workers, on Postgres and Redis."),
		kong.Writers(env.stdout, env.stderr),
		kong.Exit(func(int) { exited = true }),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 110}),
	)
	parser, err := kong.New(&commands, options...)
	if err != nil {
		return fail(env.stderr, fmt.Errorf("declare the commands: %w", err))
	}
	parsed, err := parser.Parse(conventional(args))
	switch {
	case exited: // help was requested and printed
		return exitOK
	case err != nil:
		return fail(env.stderr, misused(err))
	case len(source.Problems()) > 0 && needsSettings(parsed.Command()):
		return fail(env.stderr, source.Problems())
	}
	c := &call{ctx: ctx, cfg: &commands.Settings, settings: source.Settings(parsed), former: source.Former(parsed),
		env: env, kong: parsed}
	if needsSettings(parsed.Command()) && parsed.Command() != "doctor" { // which has them in its findings
		for _, line := range c.former {
			c.logger().WarnContext(ctx, "setting of the previous release", slog.String("change", line))
		}
	}
	return fail(env.stderr, parsed.Run(c))
}

// conventional translates the spellings that kong does not know: `--version`, and `help`
// before a command.
func conventional(args []string) []string {
	switch {
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// misused formats a usage error and names the help command.
func misused(err error) error {
	of := "seckill"
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context != nil {
		if node := wrong.Context.Selected(); node != nil {
			of += " " + node.Path()
		}
	}
	text := nothingFollows.ReplaceAllString(err.Error(), "$1: nothing follows it, but a value has to")
	text = restOfAddress.ReplaceAllString(text, "$1 …")
	return fmt.Errorf("%s; `%s --help` shows how", text, of)
}

// nothingFollows matches kong's error for a flag without its value at the end of the
// arguments.
var nothingFollows = regexp.MustCompile(`(--[a-z.-]+): expected .* value but got "EOL" \(<EOL>\)`)

// restOfAddress matches kong's error for the rest of an address whose password has a blank.
var restOfAddress = regexp.MustCompile(`(unexpected argument) \S*[@/:]\S*`)

func needsSettings(command string) bool {
	switch strings.Fields(command)[0] {
	case "version", "completion", "__complete", "schema", "verify", "push-key":
		return false
	}
	return !strings.HasPrefix(command, "log verify")
}

// fail prints an error, one line per joined error, and returns its exit code.
func fail(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFinding):
		return exitFinding
	}
	for line := range strings.Lines(config.MaskText(err.Error())) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintln(stderr, "seckill: "+line)
		}
	}
	return exitUnfit
}

// lookupIn returns a lookup over an environment; the last entry of a name is used.
func lookupIn(environ []string) func(string) (string, bool) {
	values := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// logger returns the logger of a command, on standard error.
func (c *call) logger() *slog.Logger {
	file, isFile := c.env.stderr.(*os.File)
	terminal := isFile && telemetry.IsTerminal(file)
	o := telemetry.LogOptions{Level: c.cfg.LogLevel, Color: terminal}
	switch c.cfg.LogFormat {
	case config.LogText:
		o.Format = telemetry.FormatText
	case config.LogJSON:
		o.Format = telemetry.FormatJSON
	case config.LogAuto:
		if terminal || !c.cfg.Production() {
			o.Format = telemetry.FormatText
		}
	}
	return telemetry.NewLogger(c.env.stderr, o)
}
