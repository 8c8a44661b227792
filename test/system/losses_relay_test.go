package system_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// maxWalk bounds the pages of one connection that the test reads.
const maxWalk = 40

// relayPage is a page of any connection.
type relayPage struct {
	PageInfo struct {
		StartCursor, EndCursor       *string
		HasNextPage, HasPreviousPage bool
	}
	Edges []struct {
		Cursor string
		Node   map[string]any
	}
}

// relay checks the rules of Relay's connections and object identification, for every
// connection and node of the schema.
func (m *matrix) relay(t *testing.T) {
	connections := 0
	for _, f := range m.schema.Query.Fields {
		def := m.schema.Types[f.Type.Name()]
		if !strings.HasSuffix(def.Name, "Connection") {
			continue
		}
		connections++
		m.connectionShape(t, def)
		m.pages(t, f, def)
	}
	shapes := 0
	for _, def := range m.schema.Types {
		if strings.HasSuffix(def.Name, "Connection") {
			shapes++
		}
	}
	if connections < shapes {
		t.Errorf("%d fields of Query return the %d connections", connections, shapes)
	}
	m.nodes(t)
}

// connectionShape checks the types of a connection.
func (m *matrix) connectionShape(t *testing.T, def *ast.Definition) {
	t.Helper()
	edges, info := def.Fields.ForName("edges"), def.Fields.ForName("pageInfo")
	if edges == nil || edges.Type.Elem == nil || info == nil || info.Type.String() != "PageInfo!" {
		t.Errorf("%s needs edges, a list, and pageInfo: PageInfo!", def.Name)
		return
	}
	edge := m.schema.Types[edges.Type.Name()]
	node, cursor := edge.Fields.ForName("node"), edge.Fields.ForName("cursor")
	if !strings.HasSuffix(edge.Name, "Edge") || node == nil || node.Type.Elem != nil || cursor == nil || cursor.Type.String() != "String!" {
		t.Errorf("%s needs node and cursor: String!", edge.Name)
	}
}

// pages walks a connection forwards, and backwards where it has last and before.
func (m *matrix) pages(t *testing.T, f *ast.FieldDefinition, def *ast.Definition) {
	t.Helper()
	if f.Arguments.ForName("first") == nil || f.Arguments.ForName("after") == nil {
		t.Errorf("%s needs first and after", f.Name)
		return
	}
	read := func(arguments string) (p relayPage) {
		t.Helper()
		node := m.schema.Types[m.schema.Types[def.Fields.ForName("edges").Type.Name()].Fields.ForName("node").Type.Name()]
		selection := "__typename"
		if slices.Contains(node.Interfaces, "Node") {
			selection += " id"
		}
		for _, a := range f.Arguments {
			if a.Type.NonNull && a.DefaultValue == nil {
				arguments += fmt.Sprintf(", %s: %q", a.Name, m.ids["endpoint"])
			}
		}
		actor := "admin"
		if f.Name == "myOrders" {
			actor = "owner"
		}
		out := m.ask(m.tokens[actor], fmt.Sprintf("{ p: %s(%s) { pageInfo { startCursor endCursor hasNextPage hasPreviousPage } edges { cursor node { %s } } } }", f.Name, arguments, selection), nil)
		var data struct{ P *relayPage }
		if len(out.Errors) > 0 || json.Unmarshal(out.Data, &data) != nil || data.P == nil {
			t.Fatalf("%s(%s): %s %+v", f.Name, arguments, out.Data, out.Errors)
		}
		return *data.P
	}
	var cursors []string
	after := ""
	for range maxWalk {
		p := read("first: 1" + after)
		if len(p.Edges) == 0 {
			if p.PageInfo.StartCursor != nil || p.PageInfo.EndCursor != nil || p.PageInfo.HasNextPage || len(cursors) > 0 {
				t.Errorf("%s: an empty page says %+v", f.Name, p.PageInfo)
			}
			return
		}
		cursor := p.Edges[0].Cursor
		if len(p.Edges) != 1 || *p.PageInfo.StartCursor != cursor || *p.PageInfo.EndCursor != cursor || slices.Contains(cursors, cursor) {
			t.Errorf("%s%s: page %+v", f.Name, after, p)
			return
		}
		cursors = append(cursors, cursor)
		m.refetch(t, p.Edges[0].Node)
		if !p.PageInfo.HasNextPage {
			break
		}
		after = fmt.Sprintf(", after: %q", cursor)
	}
	if f.Arguments.ForName("last") == nil || len(cursors) < 2 {
		return
	}
	end := cursors[len(cursors)-1]
	if p := read(fmt.Sprintf("last: 1, before: %q", end)); len(p.Edges) != 1 || p.Edges[0].Cursor != cursors[len(cursors)-2] || p.PageInfo.HasPreviousPage != (len(cursors) > 2) {
		t.Errorf("%s: before the end is %+v, want %s", f.Name, p, cursors[len(cursors)-2])
	}
}

// refetch reads a node of a page by its id.
func (m *matrix) refetch(t *testing.T, node map[string]any) {
	t.Helper()
	nodeID, ok := node["id"].(string)
	if !ok {
		return
	}
	for _, actor := range []string{"admin", "owner"} {
		if got := m.typeOf(m.tokens[actor], nodeID); got == node["__typename"] {
			return
		}
	}
	t.Errorf("node(id: %q) is no %s", nodeID, node["__typename"])
}

// nodes reads an object of each type with a global id through its door, and again by the
// id.
func (m *matrix) nodes(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(m.schema.Types)) {
		def := m.schema.Types[name]
		if def.Kind != ast.Object || !slices.Contains(def.Interfaces, "Node") {
			continue
		}
		document := "{ p: " + fmt.Sprintf(m.places().Replace(doors[name]), "__typename id") + " }"
		for _, actor := range []string{"owner", "admin"} {
			var data any
			if json.Unmarshal(m.ask(m.tokens[actor], document, nil).Data, &data) != nil {
				continue
			}
			if node := objectOf(data, name); node != nil {
				m.refetch(t, node)
				break
			}
		}
	}
}

// objectOf returns the first object of a type in an answer.
func objectOf(v any, name string) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		if v["__typename"] == name {
			return v
		}
		for _, each := range v {
			if found := objectOf(each, name); found != nil {
				return found
			}
		}
	case []any:
		for _, each := range v {
			if found := objectOf(each, name); found != nil {
				return found
			}
		}
	}
	return nil
}
