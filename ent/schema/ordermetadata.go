package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"

	"seckill/internal/platform/id"
)

// OrderMetadata is what other systems stored with an order. Its id is the order's. It has
// a row of its own because few orders have any, and the orders of a rush are written often.
type OrderMetadata struct{ ent.Schema }

func (OrderMetadata) Fields() []ent.Field {
	return []ent.Field{
		key(id.Order{}),
		field.Bytes("entries").MaxLen(64 << 10).Comment("JSON object of texts; at most 20 entries"),
		field.Int64("version").Default(1).Comment("compare-and-set guard"),
		instant("updated_at"),
	}
}

func (OrderMetadata) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "order_metadata"}}
}
