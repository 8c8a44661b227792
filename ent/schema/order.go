package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// Order is a purchase. Its id is the id of the order task, chosen before stock
// was taken, so that writing it twice is recognised by the primary key.
type Order struct{ ent.Schema }

func (Order) Fields() []ent.Field {
	return []ent.Field{
		key(id.Order{}),
		field.String("number").MaxLen(32).Immutable(),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.UUID("item_id", id.Item{}).Immutable(),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Enum("kind").Values("ORDINARY", "SECKILL").Default("SECKILL").Immutable(),
		field.Enum("status").Values("PENDING_PAYMENT", "PAID", "CANCELLED", "EXPIRED", "REFUNDING", "REFUNDED").
			Default("PENDING_PAYMENT"),
		field.Int("quantity").Positive().Immutable(),
		field.Int("refunded_quantity").NonNegative().Default(0).
			Comment("units whose refunds have moved the order; in rows of the first releases 0 for REFUNDED orders"),
		field.Int64("unit_price_minor").NonNegative().Immutable(),
		currency(),
		field.Int64("version").Default(1).Comment("grows by one with every change; compare-and-set guard"),
		field.Int64("epoch").Immutable().Comment("gate epoch of the reservation"),
		instant("reserved_at"),
		instant("created_at"),
		instant("updated_at"),
		field.Time("payment_deadline").Optional().Nillable().SchemaType(timestamptz),
		field.Time("paid_at").Optional().Nillable().SchemaType(timestamptz),
		field.UUID("claim_id", id.Task{}).Optional().Nillable().
			Comment("under which name Redis holds the units, when it is not the order's id: it expired and took them again"),
		field.UUID("return_key", id.Refund{}).Optional().Nillable().
			Comment("ledger key of the units that a refund returned last, when it is not the order's id: those of a partial refund"),
		field.Bool("return_due").Default(false).Comment("whether what Redis holds for it is still to be given back"),
		field.Time("return_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("before which it is not given back; null = at once"),
		field.String("person_keys").MaxLen(128).Optional().Nillable().
			Comment("keyed hashes of the contact and address that the limits of the sale count; cleared when the sale is settled"),
		field.String("payment_key").MaxLen(32).Optional().Nillable().Comment("that of the means of payment"),
		field.String("network_key").MaxLen(32).Optional().Nillable().
			Comment("keyed hash of the network that the attempt came from; cleared with person_keys"),
		field.String("device_key").MaxLen(32).Optional().Nillable().Comment("that of the browser's device token"),
		field.Enum("review").Values("HELD", "RELEASED").Optional().Nillable().
			Comment("HELD = it cannot be paid until an operator released it; RELEASED = it is not held again by itself; null = never held"),
		field.Time("review_at").Optional().Nillable().SchemaType(timestamptz).Comment("when it was held"),
		field.String("review_kinds").MaxLen(64).Default("").
			Comment("what several accounts share: kinds of clusters; comma separated"),
		field.String("review_answer").MaxLen(4 * 500).Optional().Nillable().
			Comment("of the buyer; cleared with person_keys and with the account"),
	}
}

// Indexes of Order. Each costs every order of a rush a twentieth of its time in
// Postgres: a query for the orders of an item names its sale too.
func (Order) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("number").Unique(),
		index.Fields("item_id", "user_id").Unique().StorageKey("order_one_live_per_user_and_item").
			Annotations(entsql.IndexWhere("status IN ('PENDING_PAYMENT', 'PAID', 'REFUNDING')")),
		index.Fields("user_id", "created_at"),
		index.Fields("sale_id", "created_at"),
		index.Fields("payment_deadline").StorageKey("order_unpaid_by_deadline").
			Annotations(entsql.IndexWhere("status = 'PENDING_PAYMENT'")),
		index.Fields("sale_id", "payment_key").StorageKey("order_by_payment_key").
			Annotations(entsql.IndexWhere("payment_key IS NOT NULL")),
		index.Fields("sale_id", "person_keys").StorageKey("order_cancelled_by_person").
			Annotations(entsql.IndexWhere("status = 'CANCELLED' AND person_keys IS NOT NULL")),
		index.Fields("review_at").StorageKey("order_in_review").
			Annotations(entsql.IndexWhere("review = 'HELD' AND status = 'PENDING_PAYMENT'")),
		index.Fields("id").StorageKey("order_returns").Annotations(entsql.IndexWhere("return_due")),
	}
}

func (Order) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "orders", Checks: map[string]string{
		"not_over_refunded": "refunded_quantity >= 0 AND refunded_quantity <= quantity",
	}}}
}
