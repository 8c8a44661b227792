package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// Address is an entry of a user's address book.
type Address struct{ ent.Schema }

func (Address) Fields() []ent.Field {
	fields := []ent.Field{
		key(id.Address{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Int("slot").NonNegative().Immutable().
			Comment("from 0; unique per user, so that concurrent additions cannot exceed the limit"),
		field.Bool("is_default").Default(false),
		instant("created_at"),
	}
	return append(fields, recipient()...)
}

func (Address) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("user_id", "slot").Unique(),
		index.Fields("user_id").Unique().StorageKey("address_one_default_per_user").
			Annotations(entsql.IndexWhere("is_default")),
	}
}

func (Address) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "addresses"}}
}

// OrderRecipient is the address of an order as it was when the order was written. Its id
// is the order's.
type OrderRecipient struct{ ent.Schema }

func (OrderRecipient) Fields() []ent.Field {
	return append([]ent.Field{key(id.Order{}), field.UUID("user_id", id.User{}).Immutable()}, recipient()...)
}

func (OrderRecipient) Indexes() []ent.Index { return []ent.Index{index.Fields("user_id")} }

// recipient is a person and a place. Lengths are in bytes: four per character.
func recipient() []ent.Field {
	return []ent.Field{
		field.String("name").MaxLen(4 * 64).Sensitive(),
		field.String("phone").MaxLen(32).Sensitive(),
		field.String("country").MinLen(2).MaxLen(2).Comment("ISO 3166-1 alpha-2"),
		field.String("region").MaxLen(4 * 64).Default("").Sensitive(),
		field.String("city").MaxLen(4 * 64).Sensitive(),
		field.String("street").MaxLen(4 * 200).Sensitive(),
		field.String("postal_code").MaxLen(16).Default("").Sensitive(),
	}
}

// Fulfilment is how far the goods of an order are, as the shop's own system says. Its id
// is the order's.
type Fulfilment struct{ ent.Schema }

func (Fulfilment) Fields() []ent.Field {
	return []ent.Field{
		key(id.Order{}),
		field.Enum("state").Values("PREPARING", "SHIPPED", "DELIVERED", "RETURNED"),
		field.String("carrier").MaxLen(4 * 64).Default(""),
		field.String("tracking_url").MaxLen(500).Default(""),
		instant("updated_at"),
	}
}
