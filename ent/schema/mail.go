package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// Mail is an e-mail on its way. It is written in the transaction of its reason, and kept
// for a week after it was sent or given up, without its content.
type Mail struct{ ent.Schema }

func (Mail) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("user_id", id.User{}).Optional().Nillable().Immutable(),
		field.String("recipient").MaxLen(254).Immutable(),
		field.String("kind").MaxLen(32).Immutable().Comment("of the template"),
		field.String("language").MaxLen(8).Immutable(),
		field.Bytes("content").Optional().Sensitive().
			Comment("values of the template as JSON, sealed with a key derived from the signing key; empty once it has ended"),
		field.Enum("state").Values("PENDING", "SENT", "GIVEN_UP").Default("PENDING"),
		field.Int("attempts").Default(0).Comment("also guards the result of an attempt"),
		field.Time("due_at").SchemaType(timestamptz).
			Comment("of the next attempt; during one, when another process may repeat it"),
		field.Time("retry_until").Immutable().SchemaType(timestamptz),
		field.String("error").MaxLen(200).Default("").Comment("why the last attempt failed"),
		instant("created_at"),
		field.Time("ended_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (Mail) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("due_at").StorageKey("mail_due").Annotations(entsql.IndexWhere("state = 'PENDING'")),
		index.Fields("ended_at"),
		index.Fields("user_id"),
	}
}
