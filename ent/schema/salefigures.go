package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"

	"seckill/internal/platform/id"
)

// SaleFigures is what the counters of a sale had come to when it left Redis. Its
// id is the sale's.
type SaleFigures struct{ ent.Schema }

func (SaleFigures) Fields() []ent.Field {
	return []ent.Field{
		key(id.Sale{}),
		field.Text("figures").Comment("JSON of package salestats"),
		instant("updated_at"),
	}
}

func (SaleFigures) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "sale_figures"}}
}
