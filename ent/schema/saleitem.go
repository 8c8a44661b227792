package schema

import (
	"crypto/rand"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// SaleItem is the record of stock: one goods in one sale, at its own price.
// available + held + sold = total at every commit, checked by the database.
type SaleItem struct{ ent.Schema }

func (SaleItem) Fields() []ent.Field {
	return []ent.Field{
		key(id.Item{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.UUID("goods_id", id.Goods{}).Immutable(),
		field.Int("position").NonNegative(),
		field.Int64("price_minor").NonNegative(),
		currency(),
		field.Int("purchase_limit").Optional().Nillable().Positive().
			Comment("units of the item per buyer; null = purchase_limit of the sale"),
		field.Int("total").Comment("units put on sale"),
		field.Int("available").Comment("units of no order"),
		field.Int("held").Default(0).Comment("units in unpaid orders"),
		field.Int("sold").Default(0).Comment("units in paid orders"),
		field.Int64("revision").Default(1),
		field.Int64("gate_revision").Default(0).
			Comment("highest stock revision of the gate that was noted; a gate below it lost data"),
		field.Int64("gate_epoch").Default(0).Comment(
			"epoch of the newest build of the gate; an order of a lower epoch is written only with a reservation in the new gate"),
		field.Bytes("draw_seed").Optional().MaxLen(32).Immutable().Sensitive().DefaultFunc(newSeed).
			Comment("secret of the draw before the opening; null = an item from before there were seeds"),
		field.Time("sold_out_at").Optional().Nillable().SchemaType(timestamptz).Comment("when the gate was first seen empty"),
	}
}

// newSeed returns 32 random bytes.
func newSeed() []byte {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails
	return seed
}

func (SaleItem) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("sale_id", "position").Unique(),
		index.Fields("goods_id"),
	}
}

func (SaleItem) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Checks: map[string]string{
		"stock_not_negative": "available >= 0 AND held >= 0 AND sold >= 0",
		"stock_conserved":    "available + held + sold = total",
	}}}
}
