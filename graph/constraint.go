package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/model"
	"seckill/internal/fault"
)

// slug is the shape of a name in addresses.
var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Constraints enforces @constraint on arguments and input fields, for literals
// and variables alike, before the resolver of a root field runs. A violation in a
// mutation becomes an InputError in userErrors; elsewhere a BAD_USER_INPUT error.
type Constraints struct {
	schema   *ast.Schema
	resolver *Resolver
	patterns sync.Map // pattern → *regexp.Regexp; the patterns of the schema, so bounded
}

// NewConstraints returns the check for a schema.
func NewConstraints(schema *ast.Schema, r *Resolver) *Constraints {
	return &Constraints{schema: schema, resolver: r}
}

// InterceptField is a gqlgen field middleware.
func (c *Constraints) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	fc := graphql.GetFieldContext(ctx)
	if !fc.IsResolver || len(fc.Field.Arguments) == 0 {
		return next(ctx)
	}
	def := fc.Field.Definition
	args := fc.Field.ArgumentMap(graphql.GetOperationContext(ctx).Variables)
	for _, arg := range def.Arguments {
		value, given := args[arg.Name]
		if !given {
			continue
		}
		bad := c.check(rulesOf(arg.Directives), arg.Type, value, []string{arg.Name})
		if bad == nil {
			continue
		}
		if fc.Object == c.schema.Mutation.Name {
			return refusedPayload(ctx, []model.UserError{c.resolver.userError(ctx, *bad)})
		}
		return nil, fault.New(fault.BadInput, fmt.Sprintf("%v breaks the rule %s.", bad.At, bad.Rule))
	}
	return next(ctx)
}

// rules are the arguments of one @constraint.
type rules struct {
	minLength, maxLength *int64
	min, max             *int64
	pattern, format      string
}

func rulesOf(list ast.DirectiveList) *rules {
	d := list.ForName("constraint")
	if d == nil {
		return nil
	}
	number := func(name string) *int64 {
		arg := d.Arguments.ForName(name)
		if arg == nil {
			return nil
		}
		n, err := strconv.ParseInt(arg.Value.Raw, 10, 64)
		if err != nil {
			return nil
		}
		return &n
	}
	r := &rules{minLength: number("minLength"), maxLength: number("maxLength"), min: number("min"), max: number("max")}
	if arg := d.Arguments.ForName("pattern"); arg != nil {
		r.pattern = arg.Value.Raw
	}
	if arg := d.Arguments.ForName("format"); arg != nil {
		r.format = arg.Value.Raw
	}
	return r
}

// check returns the first violation in a value, nil when there is none.
func (c *Constraints) check(r *rules, t *ast.Type, value any, path []string) *fault.BadField {
	if value == nil {
		return nil
	}
	if t.Elem != nil {
		list, ok := value.([]any)
		if !ok {
			return c.check(r, t.Elem, value, path)
		}
		for i, v := range list {
			if bad := c.check(r, t.Elem, v, append(path[:len(path):len(path)], strconv.Itoa(i))); bad != nil {
				return bad
			}
		}
		return nil
	}
	if def := c.schema.Types[t.NamedType]; def != nil && def.Kind == ast.InputObject {
		fields, _ := value.(map[string]any)
		for _, f := range def.Fields {
			if bad := c.check(rulesOf(f.Directives), f.Type, fields[f.Name], append(path[:len(path):len(path)], f.Name)); bad != nil {
				return bad
			}
		}
		return nil
	}
	if r == nil {
		return nil
	}
	if rule := c.broken(r, value); rule != "" {
		return &fault.BadField{At: path, Rule: rule}
	}
	return nil
}

// broken names the rule that a value breaks, "" when it breaks none.
func (c *Constraints) broken(r *rules, value any) string {
	switch v := value.(type) {
	case string:
		n := int64(utf8.RuneCountInString(v))
		switch {
		case !utf8.ValidString(v):
			return "UTF-8"
		case r.minLength != nil && n < *r.minLength:
			return fmt.Sprintf("minLength: %d", *r.minLength)
		case r.maxLength != nil && n > *r.maxLength:
			return fmt.Sprintf("maxLength: %d", *r.maxLength)
		case r.pattern != "" && !c.regexp(r.pattern).MatchString(v):
			return "pattern: " + r.pattern
		case r.format != "" && !wellFormed(r.format, v):
			return "format: " + r.format
		}
		return ""
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return "number"
		}
		return outside(r, f)
	case int64:
		return outside(r, float64(v))
	case int:
		return outside(r, float64(v))
	case float64:
		return outside(r, v)
	}
	return ""
}

func outside(r *rules, f float64) string {
	switch {
	case math.IsNaN(f):
		return "number"
	case r.min != nil && f < float64(*r.min):
		return fmt.Sprintf("min: %d", *r.min)
	case r.max != nil && f > float64(*r.max):
		return fmt.Sprintf("max: %d", *r.max)
	}
	return ""
}

func (c *Constraints) regexp(pattern string) *regexp.Regexp {
	if re, ok := c.patterns.Load(pattern); ok {
		return re.(*regexp.Regexp) //nolint:forcetypeassert // only regexps are stored
	}
	re := regexp.MustCompile("^(?:" + pattern + ")$") // of our own schema; a test compiles them all
	c.patterns.Store(pattern, re)
	return re
}

func wellFormed(format, v string) bool {
	switch format {
	case "email":
		a, err := mail.ParseAddress(v)
		return err == nil && a.Address == v
	case "uri":
		u, err := url.Parse(v)
		return err == nil && (u.IsAbs() || (len(v) > 0 && v[0] == '/'))
	case "slug":
		return slug.MatchString(v)
	}
	return false
}

// ExtensionName names the extension.
func (*Constraints) ExtensionName() string { return "Constraints" }

// Validate compiles every pattern of the schema, so that a bad one stops the
// start and not a request.
func (c *Constraints) Validate(graphql.ExecutableSchema) error {
	for _, def := range c.schema.Types {
		for _, f := range def.Fields {
			lists := []ast.DirectiveList{f.Directives}
			for _, arg := range f.Arguments {
				lists = append(lists, arg.Directives)
			}
			for _, list := range lists {
				if r := rulesOf(list); r != nil && r.pattern != "" {
					if _, err := regexp.Compile(r.pattern); err != nil {
						return fmt.Errorf("@constraint on %s.%s: %w", def.Name, f.Name, err)
					}
				}
			}
		}
	}
	return nil
}
