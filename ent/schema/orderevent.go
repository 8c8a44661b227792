package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// OrderEvent is one line of an order's log. Lines are added, never changed. The
// making of the order is not among them: the order's own row records it.
type OrderEvent struct{ ent.Schema }

func (OrderEvent) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("order_id", id.Order{}).Immutable(),
		field.Enum("status").Values("PENDING_PAYMENT", "PAID", "CANCELLED", "EXPIRED", "REFUNDING", "REFUNDED").Immutable().
			Comment("how the order stood afterwards"),
		field.Int64("version").Immutable().Comment("of the order afterwards"),
		field.Enum("actor").Values("BUYER", "OPERATOR", "CLOCK", "PROVIDER").Immutable(),
		field.UUID("actor_id", id.User{}).Optional().Nillable().Immutable().Comment("the user, for BUYER and OPERATOR"),
		field.Enum("code").Values(
			"PAID", "PAID_LATE", "CANCELLED", "LAPSED", "VOIDED",
			"REFUND_ASKED", "REFUND_APPROVED", "REFUND_REJECTED", "REFUNDED",
			"PAYMENT_DECLINED", "PAYMENT_RETURNED", "PAYMENT_HELD", "REFUND_FAILED", "REFUND_SETTLED",
			"PAYMENT_DISPUTED", "DISPUTE_WON", "DISPUTE_LOST",
			"PREPARING", "SHIPPED", "DELIVERED", "RETURNED", "RECIPIENT_CHANGED", "LIMIT_REACHED",
			"HELD_FOR_REVIEW", "REVIEW_ANSWERED", "REVIEW_RELEASED",
		).Immutable().Comment("what happened"),
		field.String("note").MaxLen(4 * 200).Default("").Immutable().Comment("remark for the person"),
		field.Int("quantity").Default(0).NonNegative().Immutable().
			Comment("units of the order that are refunded, or are to be; 0 = none"),
		instant("created_at"),
	}
}

func (OrderEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("order_id", "id")}
}
