package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// AcceptanceEntry is a leaf of the public log of a sale: an order that was accepted, or units
// that came back. Its id is that of the order, or of the line of stock_movements. The
// logger writes it, not the transaction of the order.
type AcceptanceEntry struct{ ent.Schema }

func (AcceptanceEntry) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.Int64("position").NonNegative().Immutable().Comment("in the log of the sale, from 0"),
		field.String("entry").MaxLen(512).Immutable().Comment("text of the leaf, in JSON"),
		field.Bytes("nodes").Optional().Nillable().Immutable().
			Comment("roots of the full tiles that end with this leaf, 32 bytes each, from level 0 up"),
	}
}

func (AcceptanceEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("sale_id", "position").Unique(),
		index.Fields("sale_id", "position").Annotations(entsql.IndexWhere("nodes IS NOT NULL")).
			StorageKey("acceptance_nodes"),
	}
}
