package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// ServiceToken gives another system rights without a user. Its secret is not stored.
type ServiceToken struct{ ent.Schema }

func (ServiceToken) Fields() []ent.Field {
	return []ent.Field{
		key(id.ServiceToken{}),
		field.String("name").MaxLen(4 * 80).Immutable(),
		field.String("scopes").MaxLen(512).Immutable().Comment("comma separated"),
		field.Bytes("hash").MaxLen(32).Immutable().Sensitive().Comment("SHA-256 of the token, which is random"),
		field.UUID("created_by", id.User{}).Optional().Nillable().Immutable().
			Comment("the administrator; null = the command line"),
		instant("created_at"),
		instant("expires_at"),
		field.Time("last_used_at").Optional().Nillable().SchemaType(timestamptz).Comment("written once a minute at most"),
		field.Time("revoked_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (ServiceToken) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hash").Unique(),
		index.Fields("id").StorageKey("servicetoken_live").Annotations(entsql.IndexWhere("revoked_at IS NULL")),
		index.Fields("created_by"),
	}
}
