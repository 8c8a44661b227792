package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/typed"
)

// maxViolations is how many violations of a list end its check: a list may be long.
const maxViolations = 20

// slug is the format of names in URLs.
var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Constraints enforces @constraint on arguments and input fields, for literals and
// variables alike, before the resolver of a root field runs. A violation in a mutation
// becomes an InputError in userErrors; elsewhere it is a BAD_USER_INPUT error.
type Constraints struct {
	schema   *ast.Schema
	resolver *Resolver
	args     map[*ast.FieldDefinition][]bound // of fields with constraints
	err      error                            // a flaw of the schema; reported by Validate
}

// bound is the constraint of a named value: its own rules and, for an input object, those
// of its fields. Rules of a list apply to its items.
type bound struct {
	name  string
	rules *rules
	input *input
}

// input holds the bounds of an input object's fields.
type input struct{ fields []bound }

type rules struct {
	minLength, maxLength *int64
	min, max             *int64
	pattern              *regexp.Regexp
	format               string
}

// NewConstraints returns the extension for a schema.
func NewConstraints(schema *ast.Schema, r *Resolver) *Constraints {
	c := &Constraints{schema: schema, resolver: r, args: map[*ast.FieldDefinition][]bound{}}
	inputs := map[string]*input{}
	for _, def := range schema.Types {
		for _, f := range def.Fields {
			for _, arg := range f.Arguments {
				b := bound{name: arg.Name, rules: c.rulesOf(arg.Directives), input: c.input(arg.Type, inputs)}
				if b.rules != nil || b.input != nil {
					c.args[f] = append(c.args[f], b)
				}
			}
		}
	}
	for _, f := range schema.Mutation.Fields {
		if payloads[f.Name] == nil {
			c.err = errors.Join(c.err, fmt.Errorf("no payload is known for %s", f.Name))
		}
	}
	return c
}

// input returns the bounds of an input object, nil for other types. Objects are stored in
// known before their fields are read, because input types can be recursive.
func (c *Constraints) input(t *ast.Type, known map[string]*input) *input {
	def := c.schema.Types[t.Name()]
	if def == nil || def.Kind != ast.InputObject {
		return nil
	}
	if in := known[def.Name]; in != nil {
		return in
	}
	in := &input{}
	known[def.Name] = in
	for _, f := range def.Fields {
		b := bound{name: f.Name, rules: c.rulesOf(f.Directives), input: c.input(f.Type, known)}
		if b.rules != nil || b.input != nil {
			in.fields = append(in.fields, b)
		}
	}
	return in
}

func (c *Constraints) rulesOf(list ast.DirectiveList) *rules {
	d := list.ForName("constraint")
	if d == nil {
		return nil
	}
	text := func(name string) string {
		if arg := d.Arguments.ForName(name); arg != nil {
			return arg.Value.Raw
		}
		return ""
	}
	number := func(name string) *int64 {
		n, err := strconv.ParseInt(text(name), 10, 64)
		if err != nil {
			return nil
		}
		return &n
	}
	r := &rules{
		minLength: number("minLength"), maxLength: number("maxLength"), min: number("min"), max: number("max"),
		format: text("format"),
	}
	if p := text("pattern"); p != "" {
		var err error
		if r.pattern, err = regexp.Compile("^(?:" + p + ")$"); err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("@constraint: %w", err))
		}
	}
	return r
}

// ExtensionName implements graphql.HandlerExtension.
func (*Constraints) ExtensionName() string { return "Constraints" }

// Validate returns an error for a schema with a pattern that does not compile, or with a
// mutation without a known payload, so that it fails the start and not a request.
func (c *Constraints) Validate(graphql.ExecutableSchema) error { return c.err }

// InterceptField implements graphql.FieldInterceptor. It also counts calls at the gate,
// converts refusals of mutations into userErrors, and logs who reads personal data: a
// second interceptor would cost a closure for each field of each response.
func (c *Constraints) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	fc := graphql.GetFieldContext(ctx)
	if isPersonal(fc.Object, fc.Field.Name) {
		value, err := next(ctx)
		if err == nil {
			c.logRead(ctx, fc, value)
		}
		return value, err
	}
	if !fc.IsResolver {
		return next(ctx)
	}
	if fc.Object != c.schema.Mutation.Name {
		return c.resolve(ctx, fc, next)
	}
	var value any
	err := guard.Spent(graphql.GetOperationContext(ctx))
	if err == nil || barred(ctx, fc) { // a missing right is reported before limits
		value, err = c.resolve(ctx, fc, next)
	}
	c.resolver.counted(ctx, fc, value, err)
	if err != nil {
		return c.resolver.refused(ctx, value, err)
	}
	return value, nil
}

// resolve checks the arguments of a field before it resolves the field.
func (c *Constraints) resolve(ctx context.Context, fc *graphql.FieldContext, next graphql.Resolver) (any, error) {
	bounds := c.args[fc.Field.Definition]
	if len(bounds) == 0 || len(fc.Field.Arguments) == 0 {
		return next(ctx)
	}
	bad, err := violations(bounds, fc.Field.Arguments, graphql.GetOperationContext(ctx).Variables)
	switch {
	case err == nil && len(bad) == 0, barred(ctx, fc):
		return next(ctx)
	case err != nil:
		return nil, err
	case fc.Object == c.schema.Mutation.Name:
		return nil, c.wholeInput(ctx, fc, bad)
	}
	return nil, fault.New(fault.BadInput, fmt.Sprintf("%v breaks the rule %s.", bad[0].At, bad[0].Rule))
}

// wholeInput adds to the violations of an input what its domain refuses of it, which knows
// the narrower rule of a field.
func (c *Constraints) wholeInput(ctx context.Context, fc *graphql.FieldContext, bad []fault.BadField) error {
	var all fault.Refusals
	if refusal, ok := fault.AsRefusal(c.resolver.inputFaults(ctx, fc.Args["input"])); ok {
		all = slices.Clone(fault.Each(refusal))
	}
	for _, b := range bad {
		b.At = b.At[1:] // below "input"
		if !slices.ContainsFunc(all, func(r fault.Refusal) bool { return slices.Equal(r.Path(), b.At) }) {
			all = append(all, b)
		}
	}
	return all
}

// violations returns the rules that the arguments of a field violate. Omitted arguments
// have the schema's defaults and are not checked.
func violations(bounds []bound, given ast.ArgumentList, variables map[string]any) ([]fault.BadField, error) {
	var bad []fault.BadField
	for i := range bounds {
		arg := given.ForName(bounds[i].name)
		if arg == nil {
			continue
		}
		value, err := arg.Value.Value(variables)
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, "The argument "+arg.Name+" cannot be read.", err)
		}
		bad = append(bad, bounds[i].check(value)...)
	}
	return bad, nil
}

func (b *bound) check(value any) []fault.BadField { return within(b.name, b.checkValue(value)) }

// within puts a name in front of the paths of violations.
func within(name string, bad []fault.BadField) []fault.BadField {
	for i := range bad {
		bad[i].At = slices.Insert(bad[i].At, 0, name)
	}
	return bad
}

func (b *bound) checkValue(value any) []fault.BadField {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return b.checkList(len(v), func(i int) any { return v[i] })
	case map[string]any:
		return b.checkFields(v)
	}
	// gqlparser wraps a single value in a list of its own type
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
		return b.checkList(list.Len(), func(i int) any { return list.Index(i).Interface() })
	}
	if b.rules == nil {
		return nil
	}
	if rule := b.rules.broken(value); rule != (fault.Rule{}) {
		return []fault.BadField{{Rule: rule}}
	}
	return nil
}

func (b *bound) checkList(n int, at func(int) any) (bad []fault.BadField) {
	for i := range n {
		if one := b.checkValue(at(i)); one != nil && len(bad) < maxViolations {
			bad = append(bad, within(strconv.Itoa(i), one)...)
		}
	}
	return bad
}

func (b *bound) checkFields(object map[string]any) (bad []fault.BadField) {
	if b.input == nil {
		return nil
	}
	for i := range b.input.fields {
		f := &b.input.fields[i]
		if one, given := object[f.name]; given {
			bad = append(bad, f.check(one)...)
		}
	}
	return bad
}

var number = fault.Rule{Code: "number"}

// broken returns the rule that a value violates; zero = none.
func (r *rules) broken(value any) fault.Rule {
	switch v := value.(type) {
	case string:
		return r.brokenBy(v)
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return number
		}
		return r.outside(f)
	case int64:
		return r.outside(float64(v))
	case int:
		return r.outside(float64(v))
	case float64:
		return r.outside(v)
	}
	return fault.Rule{}
}

func (r *rules) brokenBy(text string) fault.Rule {
	n := int64(utf8.RuneCountInString(text))
	if r.maxLength != nil && n > *r.maxLength { // counted in the form in which a text is stored
		n = int64(utf8.RuneCountInString(typed.Text(text)))
	}
	switch {
	case !utf8.ValidString(text):
		return fault.UTF8
	case r.minLength != nil && n < *r.minLength:
		return fault.MinLength(int(*r.minLength))
	case r.maxLength != nil && n > *r.maxLength:
		return fault.MaxLength(int(*r.maxLength))
	case r.pattern != nil && !r.pattern.MatchString(text):
		pattern := r.pattern.String()
		return fault.Rule{Code: fault.PatternCode, Bound: pattern[len("^(?:") : len(pattern)-len(")$")]}
	case r.format != "" && !wellFormed(r.format, text):
		return fault.Rule{Code: fault.FormatCode, Bound: r.format}
	}
	return fault.Rule{}
}

func (r *rules) outside(f float64) fault.Rule {
	switch {
	case math.IsNaN(f):
		return number
	case r.min != nil && f < float64(*r.min):
		return fault.Min(int(*r.min))
	case r.max != nil && f > float64(*r.max):
		return fault.Max(int(*r.max))
	}
	return fault.Rule{}
}

func wellFormed(format, v string) bool {
	switch format {
	case "email":
		_, ok := typed.Mailbox(v)
		return ok
	case "uri":
		u, err := url.Parse(v)
		return err == nil && (u.IsAbs() || (len(v) > 0 && v[0] == '/'))
	case "slug":
		return slug.MatchString(strings.ToLower(typed.Plain(v)))
	}
	return false
}
