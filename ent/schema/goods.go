package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// Goods is a catalogue entry: read-mostly, with no stock of its own.
type Goods struct{ ent.Schema }

func (Goods) Fields() []ent.Field {
	return []ent.Field{
		key(id.Goods{}),
		field.String("name").MaxLen(4 * 120),
		field.Text("description").Default(""),
		field.String("image_url").Optional().Nillable(),
		field.String("image_alt").MaxLen(4 * 200).Optional().Nillable().
			Comment("alternative text of the picture; null = the name"),
		field.Int64("list_price_minor").NonNegative(),
		currency(),
		field.String("external_id").MaxLen(64).Optional().Nillable().Comment("id in another system; null = none"),
		field.String("sku").MaxLen(64).Optional().Nillable().Comment("stock keeping unit; null = none"),
		field.Int64("revision").Default(1),
		field.UUID("changed_by", id.User{}).Optional().Nillable().Comment("who wrote this revision"),
		instant("created_at"),
	}
}

func (Goods) Indexes() []ent.Index {
	return []ent.Index{index.Fields("created_at", "id"), index.Fields("external_id").Unique()}
}
