package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// Session is a family of refresh tokens: one sign-in on one device. Only the
// newest token of a family is good; an older one shown again ends the family.
type Session struct{ ent.Schema }

func (Session) Fields() []ent.Field {
	return []ent.Field{
		key(id.Session{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Bytes("token_hash").Sensitive().Comment("SHA-256 of the newest refresh token"),
		field.Bytes("previous_hash").Optional().Nillable().Sensitive().
			Comment("SHA-256 of the token before; shown again within a short grace by a lost reply, later by a thief"),
		field.Int64("generation").Default(1).Comment("how often the token was rotated, plus one; compare-and-set guard"),
		instant("created_at"),
		instant("rotated_at"),
		instant("expires_at"),
		field.Time("revoked_at").Optional().Nillable().SchemaType(timestamptz),
		field.String("revoked_reason").Optional(),
		field.String("issuer").MaxLen(255).Default("").
			Comment("of the tokens of another system that use the session, which has no refresh token then; empty = none"),
	}
}

func (Session) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("user_id"),
		index.Fields("token_hash").Unique(),
		index.Fields("previous_hash"),
		index.Fields("expires_at"),
		// what every process asks after an outage
		index.Fields("revoked_at").Annotations(entsql.IndexWhere("revoked_at IS NOT NULL")),
	}
}
