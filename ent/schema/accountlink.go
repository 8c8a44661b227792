package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// AccountLink is a link that was mailed to prove that a person reads an address. It is
// used once.
type AccountLink struct{ ent.Schema }

func (AccountLink) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("user_id", id.User{}).Optional().Nillable().Immutable().
			Comment("null = a password was asked for at an address without an account"),
		field.Enum("purpose").Values("VERIFY", "CHANGE", "RESET").Immutable(),
		field.String("address").MaxLen(254).Immutable().Comment("to which it was mailed"),
		field.Bytes("token_hash").MaxLen(32).Immutable().Sensitive().Comment("SHA-256 of the secret in the link"),
		instant("created_at"),
		field.Time("expires_at").Immutable().SchemaType(timestamptz),
		field.Time("used_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("when it was used, or made void by a change of password or address"),
	}
}

func (AccountLink) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("token_hash").Unique(),
		index.Fields("user_id"),
		index.Fields("expires_at"),
	}
}
