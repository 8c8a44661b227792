package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// RefusedAttempt is why a buyer was refused at the gate of a sale: one row for each stage,
// code and process, however often it happened. It is kept for 30 days after the last time.
type RefusedAttempt struct{ ent.Schema }

func (RefusedAttempt) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.UUID("item_id", id.Item{}).Immutable().Comment("zero = no item was named"),
		field.String("stage").MaxLen(16).Immutable().Comment("of the gate: CAPTCHA, PATH, QUEUE, ORDER"),
		field.String("code").MaxLen(64).Immutable().Comment("GraphQL ErrorCode shown to the buyer"),
		field.Int("times").Positive(),
		field.Time("first_at").SchemaType(timestamptz).Immutable(),
		instant("last_at"),
		field.Int("units_left").Optional().Nillable().Comment("of the item, the last time; null = not known"),
		field.Int("ahead").Optional().Nillable().Comment("buyers ahead in the waiting room, the last time; null = no place"),
	}
}

func (RefusedAttempt) Indexes() []ent.Index {
	return []ent.Index{
		// Rows come in the thousands a second: a hash costs a third of a tree.
		index.Fields("user_id").Annotations(entsql.IndexTypes(map[string]string{dialect.Postgres: "HASH"})),
	}
}
