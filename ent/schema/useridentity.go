package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// UserIdentity is a user's account at another provider, with which the user signs in.
type UserIdentity struct{ ent.Schema }

func (UserIdentity) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.String("issuer").MaxLen(255).Immutable(),
		field.String("subject").MaxLen(255).Immutable().Comment("unique at the issuer, for ever"),
		field.UUID("user_id", id.User{}).Immutable(),
		instant("created_at"),
	}
}

func (UserIdentity) Indexes() []ent.Index {
	return []ent.Index{index.Fields("issuer", "subject").Unique(), index.Fields("user_id")}
}
