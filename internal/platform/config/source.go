package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
)

// Origin is the source of a setting's value.
type Origin string

// Origins. The origin of an environment value names the variable, that of a file value
// its path.
const (
	OriginDefault Origin = "default"
	OriginFlag    Origin = "flag"
)

// fileSuffix ends the name of a variable that names the file of a secret.
const fileSuffix = "_FILE"

// Source reads the settings that are not on the command line, from the environment and
// then from the file. It is a kong resolver for one parse. It collects errors, so that
// all are reported at once.
type Source struct {
	lookup   func(string) (string, bool)
	file     map[string]string // by flag name; nil until read
	path     string
	origins  map[string]Origin
	problems Problems
}

// NewSource returns a Source for an environment, usually os.LookupEnv.
func NewSource(lookup func(string) (string, bool)) *Source {
	return &Source{lookup: lookup, origins: map[string]Origin{}}
}

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Validate implements kong.Resolver. There is nothing to check in advance.
func (s *Source) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag that is not on the command line, nil if only the
// default is left. Flags without a group are not settings.
func (s *Source) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Group == nil {
		return nil, nil //nolint:nilnil // kong's way to say "not here"
	}
	s.readFile(ctx)
	if value, origin := s.secretFile(flag); origin != "" {
		return s.checked(flag, value, origin), nil
	}
	if value, ok := s.lookup(EnvName(flag.Name)); ok && value != "" {
		return s.checked(flag, value, Origin(EnvName(flag.Name))), nil
	}
	if value, ok := s.file[flag.Name]; ok {
		return s.checked(flag, value, Origin(s.path)), nil
	}
	return nil, nil //nolint:nilnil // kong's way to say "not here"
}

// secretFile returns the value of a secret whose variable with the suffix _FILE names a
// file, and the name of that variable; "" without one. Of a list, each line is a value.
func (s *Source) secretFile(flag *kong.Flag) (string, Origin) {
	name := EnvName(flag.Name) + fileSuffix
	path, ok := s.lookup(name)
	if !ok || path == "" || !isSecret(flag.Target.Type()) {
		return "", ""
	}
	if value, ok := s.lookup(EnvName(flag.Name)); ok && value != "" {
		s.problems = append(s.problems, fmt.Sprintf("%s and %s are both set: unset one", EnvName(flag.Name), name))
		return "", ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s: %v", name, err))
		return "", ""
	}
	value := strings.TrimRight(string(text), "\r\n")
	if flag.Target.Kind() == reflect.Slice {
		value = strings.ReplaceAll(value, "\n", ",")
	}
	return value, Origin(name)
}

// Problems returns the errors, one line each.
func (s *Source) Problems() Problems { return s.problems }

// checked returns the value if it parses, and records its origin; otherwise it records
// the problem and the default applies.
func (s *Source) checked(flag *kong.Flag, value string, origin Origin) any {
	scan := kong.Scan().PushTyped(value, kong.FlagValueToken)
	if err := flag.Value.Parse(scan, reflect.New(flag.Target.Type()).Elem()); err != nil {
		if origin == Origin(s.path) {
			origin += Origin(": " + fileKey(flag.Name))
		}
		s.problems = append(s.problems, fmt.Sprintf("%s: %s", origin, plain(err, flag)))
		return nil
	}
	s.origins[flag.Name] = origin
	return value
}

// plain removes kong's name of the flag from its error.
func plain(err error, flag *kong.Flag) string {
	return strings.TrimPrefix(err.Error(), flag.ShortSummary()+": ")
}

// readFile reads the file once. Its name comes from the flag or the environment.
func (s *Source) readFile(ctx *kong.Context) {
	if s.file != nil {
		return
	}
	s.file = map[string]string{}
	settings := settingFlags(ctx.Model)
	named := s.fileName(ctx, settings)
	s.path = named
	if named == "" {
		s.path = DefaultFile
	}
	text, err := os.ReadFile(s.path)
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.problems = append(s.problems, fmt.Sprintf("the file of settings cannot be read: %v", err))
		return
	}
	s.decode(text, settings)
}

func (s *Source) fileName(ctx *kong.Context, settings map[string]*kong.Flag) string {
	for _, element := range ctx.Path {
		if element.Flag == settings["config"] && element.Flag != nil {
			if name, ok := ctx.FlagValue(element.Flag).(string); ok {
				return name
			}
		}
	}
	name, _ := s.lookup(EnvName("config"))
	return name
}

// decode reads the flat keys of a TOML text. Each value is converted to the text form of
// the flag.
func (s *Source) decode(text []byte, settings map[string]*kong.Flag) {
	var keys map[string]any
	if err := toml.Unmarshal(text, &keys); err != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s: %v", s.path, err))
		return
	}
	names := make([]string, 0, len(keys))
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		if _, isTable := keys[key].(map[string]any); isTable && key == "oidc" { // [oidc.NAME], which package oidc reads
			s.file[key] = s.path
			continue
		}
		flag := strings.ReplaceAll(key, "_", "-")
		value, ok := flagText(keys[key])
		switch {
		case settings[flag] == nil || flag == "config":
			s.problems = append(s.problems, fmt.Sprintf("%s: there is no setting %q; `seckill config print` lists them all", s.path, key))
		case !ok:
			s.problems = append(s.problems, fmt.Sprintf("%s: %s must be one value or a list of values", s.path, key))
		default:
			s.file[flag] = value
		}
	}
}

// flagText converts a TOML value to the text form of a flag.
func flagText(value any) (string, bool) {
	switch v := value.(type) {
	case map[string]any, []map[string]any:
		return "", false
	case []any:
		texts := make([]string, 0, len(v))
		for _, element := range v {
			text, ok := flagText(element)
			if !ok {
				return "", false
			}
			texts = append(texts, strings.ReplaceAll(text, ",", `\,`))
		}
		return strings.Join(texts, ","), true
	default:
		return fmt.Sprint(v), true
	}
}

// fileKey returns the key of a flag in the file.
func fileKey(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// settingFlags returns the flags of the application that are settings, by name.
func settingFlags(app *kong.Application) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, flag := range app.Flags {
		if flag.Group != nil {
			flags[flag.Name] = flag
		}
	}
	return flags
}
