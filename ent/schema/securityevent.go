package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// SecurityEvent is a line of the security log: who did what to whose account, and from
// where. It holds no secrets and is only appended to.
type SecurityEvent struct{ ent.Schema }

func (SecurityEvent) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.String("kind").MaxLen(64).Immutable(),
		field.UUID("actor_id", id.User{}).Optional().Nillable().Immutable().
			Comment("the user who acted; null = the command line, or not known"),
		field.UUID("subject_id", id.User{}).Optional().Nillable().Immutable().Comment("the user whose account it is about"),
		field.String("address").MaxLen(64).Default("").Immutable().Comment("of the client"),
		field.String("detail").MaxLen(4 * 200).Default("").Immutable(),
		instant("created_at"),
	}
}

func (SecurityEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("created_at"),
		index.Fields("subject_id", "created_at"),
	}
}
