package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"seckill/internal/platform/collect"
)

// Setting is one setting with its value and the origin of the value.
type Setting struct {
	Flag    string `json:"flag"`
	Env     string `json:"env,omitempty"` // "" in a table of the file
	Key     string `json:"key"`           // in the file
	Group   string `json:"group"`
	Help    string `json:"help"`
	Default string `json:"default"`
	Value   string `json:"value"` // masked when secret
	Origin  Origin `json:"origin"`
	Secret  bool   `json:"secret"`
}

// Options returns the options of a kong parser for an embedded Config: the groups, the
// source, the names of the variables in the help.
func Options(source *Source) []kong.Option {
	groups := collect.Map(Groups(), func(g Group) kong.Group { return kong.Group{Key: g.Key, Title: g.Title} })
	return []kong.Option{
		kong.ExplicitGroups(groups),
		kong.Resolvers(source),
		kong.ValueFormatter(helpText),
		reader(readLevel),
		reader(readNetwork),
		reader(readRateLimit),
	}
}

// helpText adds the environment variable to the help of a setting.
func helpText(value *kong.Value) string {
	if value.Flag == nil || value.Flag.Group == nil {
		return value.Help
	}
	return fmt.Sprintf("%s [%s]", value.Help, Name(value.Name))
}

// Settings returns all settings of a parsed command line, in the order of the help.
func (s *Source) Settings(ctx *kong.Context) []Setting {
	given := map[*kong.Flag]bool{}
	for _, element := range ctx.Path {
		if element.Flag != nil && !element.Resolved {
			given[element.Flag] = true
		}
	}
	var settings []Setting
	for _, flag := range ctx.Model.Flags {
		if _, set := s.origins[flag.Name]; flag.Group == nil || flag.Hidden && !set && !given[flag] || constant(flag) != "" {
			continue
		}
		setting := Setting{
			Flag: flag.Name, Key: fileKey(flag.Name), Group: flag.Group.Key, Help: flag.Help,
			Default: flag.Default, Value: valueText(flag.Target), Origin: OriginDefault,
			Secret: isSecret(flag.Target.Type()),
		}
		if !inTable(flag.Name) {
			setting.Env = EnvName(flag.Name)
		}
		if origin, ok := s.origins[flag.Name]; ok {
			setting.Origin = origin
		}
		if given[flag] {
			setting.Origin = OriginFlag
		}
		settings = append(settings, setting)
	}
	return settings
}

func isSecret(t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t == reflect.TypeFor[Secret]()
}

// valueText formats a value as it is written in settings. Secrets are masked, and what
// may be secret in addresses.
func valueText(value reflect.Value) string {
	if value.Kind() != reflect.Slice {
		return maskValue(fmt.Sprint(value.Interface()))
	}
	texts := make([]string, 0, value.Len())
	for i := range value.Len() {
		texts = append(texts, maskValue(fmt.Sprint(value.Index(i).Interface())))
	}
	return strings.Join(texts, ",")
}

// Parse fills a Config from command-line flags and an environment. The list contains the
// origin of each value. The error is Problems or an error of the command line.
func Parse(args []string, lookup func(string) (string, bool)) (*Config, []Setting, error) {
	source := NewSource(lookup)
	cfg, ctx, err := parse(args, Options(source)...)
	if err != nil {
		return nil, nil, err
	}
	if problems := source.Problems(); len(problems) > 0 {
		return nil, nil, problems
	}
	return cfg, source.Settings(ctx), nil
}

// DefaultRequestTimeout is the default of Config.RequestTimeout.
const DefaultRequestTimeout = 5 * time.Second

// Default returns the default settings, independent of the environment and the working
// directory.
func Default() *Config {
	cfg, _, err := parse(nil)
	if err != nil {
		panic(fmt.Sprintf("config: the defaults do not parse: %v", err)) // the tags are constants of this package
	}
	return cfg
}

func parse(args []string, options ...kong.Option) (*Config, *kong.Context, error) {
	var cli struct {
		Settings Config `embed:""`
	}
	parser, err := kong.New(&cli, append(options, kong.NoDefaultHelp())...)
	if err != nil {
		return nil, nil, fmt.Errorf("declare the settings: %w", err)
	}
	ctx, err := parser.Parse(args)
	return &cli.Settings, ctx, err
}

// UnknownVariables returns the SECKILL_ variables of an environment (as of os.Environ)
// that match no setting: usually misspelt ones. SECKILL_TEST_ variables belong to the
// tests.
func UnknownVariables(environ []string) (unknown []string) {
	_, ctx, err := parse(nil)
	if err != nil {
		return nil
	}
	known := map[string]bool{}
	for name := range settingFlags(ctx.Model) {
		known[EnvName(name)] = true
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, EnvPrefix) && !strings.HasPrefix(name, EnvPrefix+"TEST_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
