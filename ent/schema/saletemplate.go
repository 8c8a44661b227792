package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// SaleTemplate is a sale without its times, under a name, from which operators create
// drafts.
type SaleTemplate struct{ ent.Schema }

func (SaleTemplate) Fields() []ent.Field {
	return []ent.Field{
		key(id.Template{}),
		field.String("name").MaxLen(4 * 120),
		field.Text("content").Comment("JSON of the draft"),
		field.UUID("saved_by", id.User{}),
		instant("saved_at"),
	}
}

func (SaleTemplate) Indexes() []ent.Index {
	return []ent.Index{index.Fields("name").Unique()}
}
