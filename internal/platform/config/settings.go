package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Setting is one setting with its value and the origin of the value.
type Setting struct {
	Flag    string `json:"flag"`
	Env     string `json:"env"`
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
	groups := make([]kong.Group, 0, len(Groups()))
	for _, g := range Groups() {
		groups = append(groups, kong.Group{Key: g.Key, Title: g.Title})
	}
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
	return fmt.Sprintf("%s [%s]", value.Help, EnvName(value.Name))
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
		if flag.Group == nil {
			continue
		}
		setting := Setting{
			Flag: flag.Name, Env: EnvName(flag.Name), Group: flag.Group.Key, Help: flag.Help,
			Default: flag.Default, Value: valueText(flag.Target), Origin: OriginDefault,
			Secret: isSecret(flag.Target.Type()),
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

// valueText formats a value as it is written in settings. Secrets are masked.
func valueText(value reflect.Value) string {
	if value.Kind() != reflect.Slice {
		return fmt.Sprint(value.Interface())
	}
	texts := make([]string, 0, value.Len())
	for i := range value.Len() {
		texts = append(texts, fmt.Sprint(value.Index(i).Interface()))
	}
	return strings.Join(texts, ",")
}

// Parse fills a Config from command-line flags and an environment. The list contains the
// origin of each value. The error is Problems or an error of the command line.
func Parse(args []string, lookup func(string) (string, bool)) (*Config, []Setting, error) {
	var cli struct {
		Settings Config `embed:""`
	}
	source := NewSource(lookup)
	parser, err := kong.New(&cli, append(Options(source), kong.NoDefaultHelp())...)
	if err != nil {
		return nil, nil, fmt.Errorf("declare the settings: %w", err)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return nil, nil, err
	}
	if problems := source.Problems(); len(problems) > 0 {
		return nil, nil, problems
	}
	return &cli.Settings, source.Settings(ctx), nil
}

// DefaultRequestTimeout is the default of Config.RequestTimeout.
const DefaultRequestTimeout = 5 * time.Second

// Default returns the default settings, independent of the environment and the working
// directory.
func Default() *Config {
	var cli struct {
		Settings Config `embed:""`
	}
	parser, err := kong.New(&cli, kong.NoDefaultHelp())
	if err == nil {
		_, err = parser.Parse(nil)
	}
	if err != nil {
		panic(fmt.Sprintf("config: the defaults do not parse: %v", err)) // the tags are constants of this package
	}
	return &cli.Settings
}

// UnknownVariables returns the SECKILL_ variables of an environment (as of os.Environ)
// that match no setting: usually misspelt ones. SECKILL_TEST_ variables belong to the
// tests.
func UnknownVariables(settings []Setting, environ []string) []string {
	known := map[string]bool{}
	for _, s := range settings {
		known[s.Env] = true
		if s.Secret {
			known[s.Env+fileSuffix] = true
		}
	}
	var unknown []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, EnvPrefix) && !strings.HasPrefix(name, EnvPrefix+"TEST_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
