package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// OrderFailure is the end of an order task that became no order. Its id is the
// task's, so that a task ends once: either here or in orders.
type OrderFailure struct{ ent.Schema }

func (OrderFailure) Fields() []ent.Field {
	return []ent.Field{
		key(id.Task{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.UUID("item_id", id.Item{}).Immutable(),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Int("quantity").Immutable(),
		field.String("code").MaxLen(64).Immutable().Comment("GraphQL ErrorCode shown to the buyer"),
		field.String("reason").MaxLen(4 * 256).Immutable().Comment("for operators; may have the note of one"),
		field.Bool("released").Default(false).Comment("whether the reservation was given back in Redis"),
		instant("reserved_at"),
		instant("created_at"),
	}
}

func (OrderFailure) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("user_id", "created_at"),
		index.Fields("id").StorageKey("orderfailure_returns").Annotations(entsql.IndexWhere("NOT released")),
	}
}
