package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// LetterAct is what an operator decided about a message that was set aside. The
// row is written before the act, so that none is without one; the message itself
// is gone afterwards.
type LetterAct struct{ ent.Schema }

func (LetterAct) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.String("letter").MaxLen(64).Immutable().Comment("id of the message set aside"),
		field.Enum("kind").Values("REPLAY", "DROP").Immutable(),
		field.String("stream").MaxLen(200).Immutable().Comment("where it came from"),
		field.UUID("task_id", id.Task{}).Optional().Nillable().Immutable().Comment("the order task it stands for"),
		field.String("reason").MaxLen(4 * 400).Immutable().Comment("why it was set aside"),
		field.String("note").MaxLen(4 * 200).Immutable().Comment("why the operator decided so"),
		field.UUID("actor_id", id.User{}).Immutable().Comment("zero = the command line"),
		instant("created_at"),
	}
}

func (LetterAct) Indexes() []ent.Index {
	return []ent.Index{index.Fields("letter", "kind").Unique()}
}
