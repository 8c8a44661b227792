package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// SaleLog is one line of the append-only log of a sale: an act of an operator or
// of the clock, written in the transaction that carried it out.
type SaleLog struct{ ent.Schema }

func (SaleLog) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.UUID("actor_id", id.User{}).Optional().Nillable().Immutable().Comment("NULL = the clock"),
		field.String("act").MaxLen(32).Immutable(),
		field.String("from_status").MaxLen(32).Immutable(),
		field.String("to_status").MaxLen(32).Immutable(),
		field.Int64("revision").Immutable().Comment("of the sale afterwards"),
		field.String("note").MaxLen(4 * 200).Default("").Immutable().Comment("why"),
		field.Text("details").Default("").Immutable().Comment("JSON: what the act changed, when it was not the status alone"),
		instant("created_at"),
	}
}

func (SaleLog) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("sale_id", "id"),
		index.Fields("actor_id", "id"),
	}
}
