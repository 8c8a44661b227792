package graph

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/model"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// isPersonal reports whether a field holds personal data of buyers: names, contacts,
// addresses, answers to reviews, and keyed hashes of these. It runs for every field of every
// response.
func isPersonal(object, field string) bool {
	switch object {
	case "User":
		return field == "account" || field == "displayName" || field == "externalId"
	case "Recipient":
		return field != "__typename"
	case "OrderReview":
		return field == "answer"
	case "OrderCluster":
		return field == "label"
	case "DeadLetterField":
		return field == "value" // a message has the person keys of its orders
	case "WebhookEvent", "WebhookDelivery":
		return field == "payload"
	}
	return false
}

// logRead appends to the security log that staff or another system read a personal value
// of somebody else.
func (c *Constraints) logRead(ctx context.Context, fc *graphql.FieldContext, value any) {
	p := auth.PrincipalFrom(ctx)
	if c.resolver.Security == nil || p == nil || !p.Service() && !p.Role.AtLeast(auth.Operator) {
		return
	}
	if shows(fc, value) && !ownData(fc, p.UserID) {
		list, filter := c.listOf(fc, graphql.GetOperationContext(ctx).Variables)
		c.resolver.Security.ListRead(ctx, p.UserID, list, filter)
	}
}

// shows reports whether a value has personal data. Most events of webhooks have none.
func shows(fc *graphql.FieldContext, value any) bool {
	text, ok := value.(string)
	if p, isPointer := value.(*string); isPointer && p != nil {
		text, ok = *p, true
	}
	if fc.Field.Name == "payload" {
		return strings.Contains(text, `"recipient"`)
	}
	return ok && text != ""
}

// ownData reports whether a value is about the caller, or about staff: acts of staff are
// shown with their names in every log. An address without an order is in the caller's own
// book.
func ownData(fc *graphql.FieldContext, caller id.User) bool {
	if !slices.Contains(ofOneUser, fc.Object) {
		return false
	}
	for at := fc.Parent; at != nil; at = at.Parent {
		switch v := at.Result.(type) {
		case *model.User:
			return ownUser(v, caller)
		case **model.User: // an element of a list
			return ownUser(*v, caller)
		case *model.Order:
			return v.Source.User == caller
		case **model.Order:
			return (*v).Source.User == caller
		case model.OrderEventData:
			return false
		}
	}
	return fc.Object == "Recipient"
}

// ofOneUser are the types whose values are about one user: a user, or the buyer of an order.
var ofOneUser = []string{"User", "Recipient", "OrderReview"}

func ownUser(u *model.User, caller id.User) bool { return u.ID == caller || u.Role != auth.Customer }

// listOf returns the path of the list that a field was read in, with the arguments that
// the security log may show, and all its arguments but the position of the page. Objects
// that are read one by one are one list without arguments: another system may read
// thousands of orders a minute.
func (c *Constraints) listOf(fc *graphql.FieldContext, variables map[string]any) (list, filter string) {
	var fields []graphql.CollectedField
	for at := fc; at != nil; at = at.Parent {
		if at.Field.Field != nil { // an element of a list has no field
			fields = append(fields, at.Field)
		}
	}
	slices.Reverse(fields)
	last := slices.IndexFunc(fields, func(f graphql.CollectedField) bool {
		return f.Definition.Type.Elem != nil || strings.HasSuffix(f.Definition.Type.NamedType, "Connection")
	})
	if last < 0 {
		return fields[0].Name, ""
	}
	var shown, asked strings.Builder
	for i, f := range fields[:last+1] {
		args := map[string]any{}
		for _, arg := range f.Arguments {
			if value, err := arg.Value.Value(variables); err == nil && value != nil && !slices.Contains(paging, arg.Name) {
				args[arg.Name] = value
			}
		}
		if i > 0 {
			shown.WriteByte('.')
		}
		shown.WriteString(f.Name)
		if len(args) > 0 {
			shown.WriteString("(" + c.fields(f.Definition.Arguments, args) + ")")
		}
		fmt.Fprint(&asked, f.Name, args) // maps are printed in the order of their keys
	}
	return shown.String(), asked.String()
}

// paging are the arguments that select a page of a list.
var paging = []string{"first", "after", "last", "before"}

// plainTexts are the arguments with free text that name no person.
var plainTexts = []string{"slug", "cluster", "provider"}

// fields returns the text of arguments or of the fields of an input, in the order of the
// schema; "…" replaces what may name a person.
func (c *Constraints) fields(defs ast.ArgumentDefinitionList, given map[string]any) string {
	var parts []string
	for _, def := range defs {
		if value := given[def.Name]; value != nil {
			parts = append(parts, def.Name+": "+c.shown(def.Name, def.Type, value))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *Constraints) shown(name string, t *ast.Type, value any) string {
	def := c.schema.Types[t.Name()]
	switch v := value.(type) {
	case []any:
		items := collect.Map(v, func(item any) string { return c.shown(name, t, item) })
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		inner := make(ast.ArgumentDefinitionList, len(def.Fields))
		for i, f := range def.Fields {
			inner[i] = &ast.ArgumentDefinition{Name: f.Name, Type: f.Type}
		}
		return "{" + c.fields(inner, v) + "}"
	case bool:
		return strconv.FormatBool(v)
	case string:
		_, _, noID := id.Split(v)
		_, noUUID := uuid.Parse(v)
		if noID == nil || noUUID == nil || def.Kind == ast.Enum || def.Name == "DateTime" || slices.Contains(plainTexts, name) {
			return v
		}
	}
	return "…"
}
