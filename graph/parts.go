package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/generated"
	"seckill/internal/platform/auth"
)

// Part names the callers whom a part of the schema is for.
type Part string

// Parts of the schema. Fields that are open to everyone are in each of them, besides the open
// mutations, such as sign-in, which service tokens do not need.
const (
	CustomerPart Part = "customer" // what a signed-in buyer may use
	StaffPart    Part = "staff"    // what needs a role above that, or shows staff more than to buyers
	ServicePart  Part = "service"  // what needs a scope
)

// requirement is what @auth demands.
type requirement struct {
	role  auth.Role
	scope auth.Scope // "" = no service token may read the field
}

// requirementOf returns what the directives of a field demand; nil = open to everyone.
func requirementOf(list ast.DirectiveList) *requirement {
	d := list.ForName("auth")
	if d == nil {
		return nil
	}
	out := &requirement{role: auth.Customer} // the default in the schema
	if arg := d.Arguments.ForName("role"); arg != nil {
		out.role = auth.Role(arg.Value.Raw)
	}
	if arg := d.Arguments.ForName("scope"); arg != nil {
		out.scope = auth.Scope(arg.Value.Raw)
	}
	return out
}

// Schema returns the schema of the API. Fields for buyers come before those for operators, and
// these before those for administrators: so pages that read the schema list them.
func Schema() *ast.Schema {
	whole := generated.NewExecutableSchema(generated.Config{}).Schema()
	out := *whole
	out.Types = maps.Clone(whole.Types)
	ranks := []auth.Role{auth.Customer, auth.Operator, auth.Admin}
	rank := func(f *ast.FieldDefinition) int {
		if q := requirementOf(f.Directives); q != nil {
			return slices.Index(ranks, q.role)
		}
		return 0
	}
	for _, root := range []**ast.Definition{&out.Query, &out.Mutation, &out.Subscription} {
		def := **root
		def.Fields = slices.Clone(def.Fields)
		slices.SortStableFunc(def.Fields, func(a, b *ast.FieldDefinition) int { return rank(a) - rank(b) })
		*root, out.Types[def.Name] = &def, &def
	}
	return &out
}

// SchemaPart returns the schema for the callers of a part: its root fields and all types that they reach.
func SchemaPart(part Part) *ast.Schema {
	whole := Schema()
	p := partOf{part: part, whole: whole, out: &ast.Schema{
		Types: map[string]*ast.Definition{}, Directives: whole.Directives, Description: whole.Description,
	}}
	for _, d := range whole.Directives {
		for _, arg := range d.Arguments {
			p.add(arg.Type.Name())
		}
	}
	p.out.Query, p.out.Mutation = p.root(whole.Query), p.root(whole.Mutation)
	p.out.Subscription = p.root(whole.Subscription)
	return p.out
}

// partOf builds a part of a schema.
type partOf struct {
	part       Part
	whole, out *ast.Schema
}

// root adds a root type with the fields of the part.
func (p partOf) root(def *ast.Definition) *ast.Definition {
	return p.object(def, func(f *ast.FieldDefinition) bool {
		q := requirementOf(f.Directives)
		switch {
		case q == nil:
			return p.part != ServicePart || def != p.whole.Mutation
		case p.part == StaffPart:
			return q.role != auth.Customer || q.scope != ""
		}
		return p.reads(f.Directives)
	})
}

// reads reports whether a field that a part leads to is in it.
func (p partOf) reads(list ast.DirectiveList) bool {
	q := requirementOf(list)
	switch {
	case q == nil || p.part == StaffPart:
		return true
	case p.part == ServicePart:
		return q.scope != ""
	}
	return q.role == auth.Customer
}

// object adds a type with those of its fields that are in the part.
func (p partOf) object(def *ast.Definition, in func(*ast.FieldDefinition) bool) *ast.Definition {
	part := *def
	part.Fields, part.Interfaces = nil, nil
	p.out.Types[def.Name] = &part
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") || !in(f) || !p.reads(p.whole.Types[f.Type.Name()].Directives) {
			continue
		}
		part.Fields = append(part.Fields, f)
		p.add(f.Type.Name())
		for _, arg := range f.Arguments {
			p.add(arg.Type.Name())
		}
	}
	for _, name := range def.Interfaces {
		part.Interfaces = append(part.Interfaces, name)
		p.add(name)
	}
	return &part
}

// add adds a type and the types that it leads to. The types that are a Node are those that
// other fields lead to.
func (p partOf) add(name string) {
	def := p.whole.Types[name]
	if _, known := p.out.Types[name]; known {
		return
	}
	switch def.Kind {
	case ast.Object, ast.Interface:
		p.object(def, func(f *ast.FieldDefinition) bool { return p.reads(f.Directives) })
	case ast.InputObject:
		p.out.Types[name] = def
		for _, f := range def.Fields {
			p.add(f.Type.Name())
		}
	default:
		p.out.Types[name] = def
	}
	if name != "Node" {
		for _, possible := range p.whole.GetPossibleTypes(def) {
			p.add(possible.Name)
		}
	}
}
