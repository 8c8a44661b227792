package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Goods is a catalogue entry: read-mostly, with no stock of its own.
type Goods struct{ ent.Schema }

// Fields of Goods.
func (Goods) Fields() []ent.Field {
	return []ent.Field{
		id(),
		field.String("name").MaxLen(120),
		field.Text("description").Default(""),
		field.String("image_url").Optional().Nillable(),
		field.Int64("list_price_minor").NonNegative(),
		currency(),
		instant("created_at"),
	}
}

// Indexes of Goods.
func (Goods) Indexes() []ent.Index {
	return []ent.Index{index.Fields("created_at", "id")}
}
