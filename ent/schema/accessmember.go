package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// AccessMember is a member of a list that access rules of sales name.
type AccessMember struct{ ent.Schema }

func (AccessMember) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.String("list").MaxLen(40).Immutable(),
		field.String("member").MaxLen(260).Immutable().
			Comment("a: and an account, x: and the id in another system, or c: and the keyed hash of a contact"),
		instant("created_at"),
	}
}

func (AccessMember) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("member", "list").Unique(), // in this order for the lists of a buyer
		index.Fields("list", "id"),
	}
}
