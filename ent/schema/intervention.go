package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// Intervention is an act of an operator that may need a second person: a change of an
// item's stock, of an approved sale or of a product that it offers, the voiding of an order, the extension of a sale,
// or money that goes back. The row is the request that a second person confirms, where the act needs two, and
// afterwards the note of how far the act has got between Postgres and Redis, so that a crash in between is made good.
type Intervention struct{ ent.Schema }

func (Intervention) Fields() []ent.Field {
	return []ent.Field{
		key(id.Act{}),
		field.UUID("sale_id", id.Sale{}).Immutable().Comment("zero for money of no known order"),
		field.UUID("item_id", id.Item{}).Immutable().Comment("of ADJUST_STOCK, VOID_ORDER and DRAW_VALUE; zero for the others"),
		field.Enum("kind").Values("ADJUST_STOCK", "VOID_ORDER", "EXTEND_SALE", "CHANGE_SALE", "CHANGE_GOODS",
			"REFUND", "SETTLE_REFUND", "RETURN_PAYMENT", "SETTLE_PAYMENT", "DRAW_VALUE").Immutable(),
		field.UUID("order_id", id.Order{}).Optional().Nillable().Immutable().Comment("of VOID_ORDER, and of money"),
		field.UUID("subject_id", uuid.UUID{}).Optional().Nillable().Immutable().
			Comment("the product of CHANGE_GOODS, the refund of REFUND and SETTLE_REFUND, the held payment of the others about money"),
		field.Text("change").Default("").Immutable().Comment("JSON with a version: what CHANGE_SALE and CHANGE_GOODS change, the value of DRAW_VALUE"),
		field.Int64("amount_minor").Default(0).Immutable().Comment("of money that goes back"),
		field.String("currency").MaxLen(3).Default("").Immutable(),
		field.UUID("holder_id", id.User{}).Optional().Nillable().Immutable().Comment("the order's buyer"),
		field.Int("quantity").Immutable().Comment("units; signed for ADJUST_STOCK; 0 for acts on no units"),
		field.Int("extension_seconds").Default(0).Immutable().Comment("of EXTEND_SALE: by how much, rounded up"),
		field.Time("ends_at").Optional().Nillable().Immutable().SchemaType(timestamptz).
			Comment("new end of the sale, for EXTEND_SALE"),
		field.String("note").MaxLen(4 * 200).Immutable().Comment("why"),
		field.Enum("state").Values("REQUESTED", "DECLINED", "TAKING", "RETURNING", "REFUNDING", "FINISHING", "DONE",
			"REFUSED"),
		field.UUID("requested_by", id.User{}).Immutable(),
		field.UUID("decided_by", id.User{}).Optional().Nillable().Comment("the second person"),
		field.String("decision").MaxLen(4 * 200).Default("").Comment("remark of the second person"),
		instant("created_at"),
		instant("updated_at"),
	}
}

func (Intervention) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("state", "id"),
		index.Fields("sale_id", "id"),
		index.Fields("requested_by", "created_at"),
	}
}
