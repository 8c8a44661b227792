package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
	"github.com/agnivade/levenshtein"
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

// fileSuffix ends the name of a variable or key that names the file of a secret.
const fileSuffix = "-file"

// Source reads the settings that are not on the command line, from the environment and
// then from the file. It is a kong resolver for one parse. It collects errors, so that
// all are reported at once.
type Source struct {
	lookup   func(string) (string, bool)
	file     map[string]string // by the key, as a flag; nil until read
	path     string
	origins  map[string]Origin
	problems Problems
	former   []string
}

// NewSource returns a Source for an environment, usually os.LookupEnv.
func NewSource(lookup func(string) (string, bool)) *Source {
	return &Source{lookup: lookup, origins: map[string]Origin{}}
}

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Name returns what operators write: the environment variable of a flag, or for a setting
// of a table its key in the file.
func Name(flag string) string {
	if inTable(flag) {
		return fileKey(flag)
	}
	return EnvName(flag)
}

// inTable reports whether a setting belongs to a table of the file. It has no variable.
func inTable(flag string) bool { return strings.Contains(flag, ".") }

// Validate implements kong.Resolver. There is nothing to check in advance.
func (s *Source) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag that is not on the command line, nil if only the
// default is left. Flags without a group are not settings.
func (s *Source) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Group == nil {
		return nil, nil // kong's way to say "not here"
	}
	s.readFile(ctx)
	var first *input
	for _, read := range []func(string) *input{s.variable, s.key} {
		for _, name := range append([]string{flag.Name}, flag.Aliases...) {
			in := s.input(flag, name, read)
			if in == nil {
				continue
			}
			if name != flag.Name || constant(flag) != "" {
				s.noteFormer(in.name, flag)
			}
			if first == nil {
				first = in
			}
		}
	}
	if first == nil || constant(flag) != "" {
		return nil, nil // kong's way to say "not here"
	}
	return s.checked(flag, first), nil
}

// input is the text of a setting under one of its names.
type input struct {
	name   string // of the variable, or path and key of the file
	text   string
	origin Origin
}

func (s *Source) variable(flag string) *input {
	name := EnvName(flag)
	if text, _ := s.lookup(name); text != "" && !inTable(flag) {
		return &input{name, text, Origin(name)}
	}
	return nil
}

func (s *Source) key(flag string) *input {
	if text, ok := s.file[flag]; ok {
		return &input{s.path + ": " + fileKey(flag), text, Origin(s.path)}
	}
	return nil
}

// input returns what the environment or the file gives for a flag under a name; nil without
// a value. A secret may be in a file, which the name with the suffix -file names.
func (s *Source) input(flag *kong.Flag, name string, read func(string) *input) *input {
	in, file := read(name), read(name+fileSuffix)
	if file == nil || !isSecret(flag.Target.Type()) {
		return in
	}
	if in != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s and %s are both set: unset one", in.name, file.name))
		return nil
	}
	text, err := os.ReadFile(file.text)
	if err != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s: %v", file.name, reason(err)))
		return nil
	}
	file.text, file.origin = strings.TrimRight(string(text), "\r\n"), Origin(file.name)
	if flag.Target.Kind() == reflect.Slice { // each line is a value
		file.text = strings.ReplaceAll(file.text, "\n", ",")
	}
	return file
}

// reason returns an error of a file without the path, which is the secret itself where a
// value was given for the name of its file.
func reason(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}

// Problems returns the errors, one line each.
func (s *Source) Problems() Problems { return s.problems }

// checked returns the value if it parses, and records its origin; otherwise it records
// the problem and the default applies.
func (s *Source) checked(flag *kong.Flag, in *input) any {
	scan := kong.Scan().PushTyped(in.text, kong.FlagValueToken)
	if err := flag.Value.Parse(scan, reflect.New(flag.Target.Type()).Elem()); err != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s: %s", in.name, plain(err, flag)))
		return nil
	}
	s.origins[flag.Name] = in.origin
	return in.text
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

// decode reads a TOML text. Each value is converted to the text form of the flag.
func (s *Source) decode(text []byte, settings map[string]*kong.Flag) {
	var keys map[string]any
	if err := toml.Unmarshal(text, &keys); err != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s: %s", s.path, place(err)))
		return
	}
	s.table("", keys, settings)
}

// place returns where a text is not TOML. The parser's own message quotes the text, which
// may be a secret without its quotes.
func place(err error) string {
	wrong, ok := errors.AsType[toml.ParseError](err)
	switch {
	case !ok || strings.HasPrefix(wrong.Message, "Key '"): // is defined twice
		return err.Error()
	case wrong.LastKey != "":
		return fmt.Sprintf("line %d, after %s, is not TOML: write texts in quotes", wrong.Position.Line, wrong.LastKey)
	}
	return fmt.Sprintf("line %d is not TOML: write key = value, and texts in quotes", wrong.Position.Line)
}

// table reads a table; the flag of a key is table.key.
func (s *Source) table(prefix string, keys map[string]any, settings map[string]*kong.Flag) {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		key := prefix + name
		flag := strings.ReplaceAll(key, "_", "-")
		value, ok := flagText(keys[name])
		inner, isTable := keys[name].(map[string]any)
		switch {
		case isTable && key == "oidc": // [oidc.NAME], which package oidc reads
			s.file[flag] = s.path
		case isTable && settings[flag] == nil:
			s.table(key+".", inner, settings)
		case settings[flag] == nil || flag == "config":
			s.problems = append(s.problems, fmt.Sprintf(
				"%s: there is no setting %q; the nearest is %q, and `seckill config print` lists them all", s.path, key,
				nearest(key, settings)))
		case !ok:
			s.problems = append(s.problems, fmt.Sprintf("%s: %s must be one value or a list of values", s.path, key))
		default:
			s.file[flag] = value
		}
	}
}

// nearest returns the key of the setting that is spelled most like a key.
func nearest(key string, settings map[string]*kong.Flag) string {
	var keys []string
	for name, flag := range settings {
		if name == flag.Name && !flag.Hidden {
			keys = append(keys, fileKey(name))
		}
	}
	return slices.MinFunc(keys, func(a, b string) int {
		return cmp.Or(levenshtein.ComputeDistance(key, a)-levenshtein.ComputeDistance(key, b), cmp.Compare(a, b))
	})
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

func fileKey(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// settingFlags returns the flags of the application that are settings, by each of their names.
func settingFlags(app *kong.Application) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, flag := range app.Flags {
		if flag.Group == nil {
			continue
		}
		for _, name := range append([]string{flag.Name}, flag.Aliases...) {
			flags[name] = flag
			if isSecret(flag.Target.Type()) {
				flags[name+fileSuffix] = flag
			}
		}
	}
	return flags
}

// OpenFiles returns how many files and sockets this process may have open
// (RLIMIT_NOFILE). The Go runtime raises the soft limit to the hard one at the start.
func OpenFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}

// Connections returns how many public connections a process accepts that may open so many
// files, and how many of them may be sockets and event streams. The remaining files are for
// the admin listener, Postgres, Redis and outgoing requests, and the remaining connections
// for requests.
func Connections(files int) (connections, sockets int) {
	connections = files - min(files/4, 1000)
	return connections, connections - min(connections/4, 2000)
}

// Former are settings of the previous release that are constants now. For one release they
// are accepted, ignored and reported. The tag says what is constant.
type Former struct {
	FormerCaptchaPool  string `name:"captcha-pool" hidden:"" group:"former" constant:"1024 captcha pictures of each kind are kept drawn, 64 in development"`
	FormerCaptchaTTL   string `name:"captcha-ttl" hidden:"" group:"former" constant:"a captcha can be answered for 5m"`
	FormerClaimIdle    string `name:"claim-idle" hidden:"" group:"former" constant:"a message whose worker was silent for 15s goes to another worker"`
	FormerDrainDelay   string `name:"drain-delay" hidden:"" group:"former" constant:"/readyz fails for 2s before the listeners close, in development not at all"`
	FormerLoadSlot     string `name:"load-slot" hidden:"" group:"former" constant:"a time slot of the scheduler is 2h"`
	FormerLoadSlots    string `name:"load-slots" hidden:"" group:"former" constant:"sales are loaded that start within 5 time slots"`
	FormerOrderBatch   string `name:"order-batch" hidden:"" group:"former" constant:"at most 256 orders are written in one transaction"`
	FormerPreloadEvery string `name:"preload-every" hidden:"" group:"former" constant:"the scheduler looks for sales to load every 5s"`
	FormerPushServices string `name:"push-services" hidden:"" group:"former" constant:"browsers subscribe at the push services of Chrome, Edge, Firefox and Safari"`
	FormerUserSockets  string `name:"user-sockets" hidden:"" group:"former" constant:"a signed-in user may have 3 sockets open to one process"`
}

// constant returns what replaced a former setting; "" for a setting.
func constant(flag *kong.Flag) string { return flag.Tag.Get("constant") }

// noteFormer records the use of an old name: of a variable, a key or a flag.
func (s *Source) noteFormer(used string, flag *kong.Flag) {
	line := used + " is no longer a setting and is ignored: " + constant(flag)
	if constant(flag) == "" {
		line = used + " is an old name: write " + fileKey(flag.Name)
		if strings.HasSuffix(strings.ToLower(used), "_file") {
			line += "_file"
		}
	}
	s.former = append(s.former, line)
}

// Former returns a line for each old name that the command line, the environment or the
// file uses, with what takes its place.
func (s *Source) Former(ctx *kong.Context) []string {
	flags := settingFlags(ctx.Model)
	for _, arg := range ctx.Args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if flag := flags[name]; flag != nil && strings.HasPrefix(arg, "--") && (name != flag.Name || constant(flag) != "") {
			s.noteFormer("--"+name, flag)
		}
	}
	slices.Sort(s.former)
	return slices.Compact(s.former)
}
