package graph

import (
	"context"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/generated"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
)

// mayUse reports whether a principal may read a field with an @auth directive.
func mayUse(t *testing.T, p *auth.Principal, field *ast.FieldDefinition) bool {
	t.Helper()
	d := field.Directives.ForName("auth")
	role, scope := auth.Customer, (*auth.Scope)(nil)
	if arg := d.Arguments.ForName("role"); arg != nil {
		role = auth.Role(arg.Value.Raw)
	}
	if arg := d.Arguments.ForName("scope"); arg != nil {
		named := auth.Scope(arg.Value.Raw)
		scope = &named
	}
	ctx := auth.WithPrincipal(t.Context(), p)
	_, err := authorise(ctx, nil, func(context.Context) (any, error) { return nil, nil }, role, scope)
	refused := barred(ctx, &graphql.FieldContext{Field: graphql.CollectedField{Field: &ast.Field{Definition: field}}})
	if failed := err != nil; failed != refused {
		t.Errorf("%s: authorise says %v, barred %v", field.Name, err, refused)
	}
	if err != nil && fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("%s: %v", field.Name, err)
	}
	return err == nil
}

// What a service account must never do, whatever its scopes are: buy, decide about money,
// confirm as a second person, change the accounts or rights of users.
func TestAServiceAccountWithAllScopesCannotBuyDecideOrConfirm(t *testing.T) {
	t.Parallel()
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	all := &auth.Principal{Scopes: auth.Scopes()}
	permitted := map[string]bool{
		"createGoods": true, "updateGoods": true, "upsertGoods": true, "createSale": true, "updateSale": true, "upsertSale": true,
		"setOrderMetadata": true, "setFulfilment": true, "setUserExternalId": true,
		"changeAccessMembers": true, "createAccessCodes": true, "revokeAccessCodes": true,
	}
	for _, field := range schema.Mutation.Fields {
		if field.Directives.ForName("auth") == nil {
			continue // open to all
		}
		if may := mayUse(t, all, field); may && !permitted[field.Name] {
			t.Errorf("a service account may use %s", field.Name)
		}
	}
}

func TestAScopeGrantsItsFieldsAlone(t *testing.T) {
	t.Parallel()
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		for _, field := range root.Fields {
			d := field.Directives.ForName("auth")
			if d == nil {
				continue
			}
			needed := ""
			if arg := d.Arguments.ForName("scope"); arg != nil {
				needed = arg.Value.Raw
			}
			for _, scope := range auth.Scopes() {
				p := &auth.Principal{Scopes: []auth.Scope{scope}}
				if may := mayUse(t, p, field); may != (needed != "" && p.MayUse(auth.Scope(needed))) {
					t.Errorf("%s with %s: %v, it needs %q", field.Name, scope, may, needed)
				}
			}
			if mayUse(t, &auth.Principal{Scopes: []auth.Scope{}}, field) {
				t.Errorf("%s needs no scope", field.Name)
			}
		}
	}
}

// A principal that is a service account is no operator in the code behind the fields.
func TestAServiceAccountHasNoRole(t *testing.T) {
	t.Parallel()
	ctx := auth.WithPrincipal(t.Context(), &auth.Principal{Scopes: auth.Scopes()})
	if isOperator(ctx) || shopper(ctx) != nil || !reads(ctx, auth.SalesRead) {
		t.Error("a service account counts as a user")
	}
	if _, err := authorise(t.Context(), nil, nil, auth.Customer, nil); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("without a principal: %v", err)
	}
}
