package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program of the test has one table and one file that uses it.
var program = map[string]string{
	"ent/order/where.go": `package order

import "strings"

func IDEQ(id int) int { return id }

func TitleHasPrefix(s string) string { return strings.ToUpper(s) }

var Validator func(string) error
`,
	"ent/order_query.go": `package ent

import "context"

type OrderQuery struct{}

func (q *OrderQuery) Where(ids ...int) *OrderQuery { return q }

func (q *OrderQuery) All(ctx context.Context) ([]int, error) { return q.sqlAll(ctx) }

func (q *OrderQuery) AllX(ctx context.Context) []int { rows, _ := q.All(ctx); return rows }

func (q *OrderQuery) sqlAll(ctx context.Context) ([]int, error) { return nil, nil }

type OrderUpdate struct{ mutation *OrderMutation }

func (u *OrderUpdate) Where(ids ...int) *OrderUpdate { return u }

func (u *OrderUpdate) SetTitle(s string) *OrderUpdate { u.mutation.SetTitle(s); return u }

`,
	"ent/mutation.go": `package ent

import "entgo.io/ent"

type OrderMutation struct {
	title *string
}

var _ ent.Mutation = (*OrderMutation)(nil)

func (m *OrderMutation) SetTitle(s string) { m.title = &s }

func (m *OrderMutation) ResetField(name string) error { m.ResetTitle(); return nil }

func (m *OrderMutation) ResetTitle() { m.title = nil }
`,
	"ent/client.go": `package ent

type Client struct{ Order *OrderClient }

type OrderClient struct{}

func (c *OrderClient) Query() *OrderQuery { return &OrderQuery{} }

func (c *OrderClient) Update() *OrderUpdate { return &OrderUpdate{} }
`,
	"ent/runtime.go": `package ent

import "seckill/ent/order"

func init() { order.Validator = nil }
`,
	"ent/hook/hook.go": "package hook\n",
	"internal/list.go": `package internal

import (
	"context"

	"seckill/ent"
	"seckill/ent/order"
)

func list(ctx context.Context, c *ent.Client) ([]int, error) {
	return c.Order.Query().Where(order.IDEQ(1)).All(ctx)
}
`,
	"other/list.go": `package other

func all(x interface{ AllX() }) { x.AllX() }
`,
}

func TestGeneratedCodeHoldsWhatCodeNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range program {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune("ent"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("ent/hook"); !os.IsNotExist(err) {
		t.Errorf("ent/hook is there: %v", err)
	}
	for path, want := range map[string]struct{ kept, gone []string }{
		"ent/order/where.go": {[]string{"IDEQ", "Validator"}, []string{"TitleHasPrefix", `"strings"`}},
		"ent/order_query.go": {
			[]string{"*OrderQuery) Where", "*OrderQuery) All(", "sqlAll("},
			[]string{"AllX", "OrderUpdate"}, // nothing calls Update
		},
		"ent/client.go":  {[]string{"type Client", "OrderClient) Query"}, []string{"OrderClient) Update"}},
		"ent/runtime.go": {[]string{"func init()"}, nil},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want.kept {
			if !strings.Contains(string(text), name) {
				t.Errorf("%s lacks %s", path, name)
			}
		}
		for _, name := range want.gone {
			if strings.Contains(string(text), name) {
				t.Errorf("%s has %s", path, name)
			}
		}
	}
	// The first use of a setter brings the builder and its mutation, without what only hooks call.
	text := "package internal\n\nimport \"seckill/ent\"\n\nfunc set(c *ent.Client) { c.Order.Update().SetTitle(\"x\") }\n"
	for path, text := range map[string]string{
		"internal/set.go": text, "ent/order_query.go": program["ent/order_query.go"],
		"ent/mutation.go": program["ent/mutation.go"], "ent/client.go": program["ent/client.go"],
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune("ent"); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, path := range []string{"ent/order_query.go", "ent/mutation.go"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text...)
	}
	for _, name := range []string{"OrderUpdate) SetTitle", "OrderMutation) SetTitle", "{\n\tunhooked\n\ttitle", "type unhooked"} {
		if !strings.Contains(string(out), name) {
			t.Errorf("the update lacks %q", name)
		}
	}
	for _, name := range []string{"OrderUpdate) Where", "ResetField", "ResetTitle"} {
		if strings.Contains(string(out), name) {
			t.Errorf("%s is there without a use", name)
		}
	}
}
