package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// StockMovement is one line of the append-only ledger of stock. The key
// (order, kind) makes each move of an order happen once; orders of one item that are
// written together share one line for HOLD, which names the first of them.
type StockMovement struct{ ent.Schema }

func (StockMovement) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("order_id", uuid.UUID{}).Immutable().
			Comment("order; for HOLD the first of those written together; the act of an operator for ADJUST; the item for OPEN"),
		field.UUID("item_id", id.Item{}).Immutable(),
		field.Enum("kind").Values("OPEN", "HOLD", "SELL", "RELEASE", "RETAKE", "RESTOCK", "WITHDRAW", "ADJUST").Immutable(),
		field.Int("quantity").Immutable().Comment("units; signed for ADJUST, positive otherwise"),
		instant("created_at"),
	}
}

func (StockMovement) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("order_id", "kind").Unique(),
		index.Fields("item_id"),
		index.Fields("item_id", "id").StorageKey("stock_movement_adjustments").
			Annotations(entsql.IndexWhere("kind = 'ADJUST'")),
	}
}
