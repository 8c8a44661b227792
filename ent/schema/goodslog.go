package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// GoodsLog is one line of the append-only log of a catalogue entry, written in the
// transaction that changed it.
type GoodsLog struct{ ent.Schema }

func (GoodsLog) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("goods_id", id.Goods{}).Immutable(),
		field.UUID("actor_id", id.User{}).Immutable(),
		field.String("act").MaxLen(32).Immutable(),
		field.Int64("revision").Immutable().Comment("of the goods afterwards"),
		field.String("note").MaxLen(4 * 200).Default("").Immutable().Comment("why"),
		field.Text("details").Default("").Immutable().Comment("JSON: what the act changed"),
		instant("created_at"),
	}
}

func (GoodsLog) Indexes() []ent.Index {
	return []ent.Index{index.Fields("goods_id", "id")}
}
