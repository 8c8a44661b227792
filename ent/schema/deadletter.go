package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// DeadLetter is a stream entry that could not be handled. It is written before the entry is
// acknowledged, and stays OPEN until it is replayed, retried or dropped.
type DeadLetter struct{ ent.Schema }

func (DeadLetter) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.String("stream").MaxLen(200).Immutable().Comment("key of its original stream"),
		field.String("entry").MaxLen(64).Immutable().Comment("its id in that stream"),
		field.String("message_id").MaxLen(200).Default("").Immutable().Comment("empty = it could not be decoded"),
		field.String("handler").MaxLen(200).Default("").Immutable().Comment("the handler that gave it up"),
		field.String("reason").MaxLen(4 * 400).Default("").Immutable(),
		field.Int("deliveries").NonNegative().Default(0).Immutable(),
		field.Int("attempts").NonNegative().Default(0).Immutable().Comment("of the last consumer"),
		field.Bytes("fields").Immutable().Comment(
			"the raw entry: JSON of the names and values in their order, each in base64"),
		field.Enum("state").Values("OPEN", "REPLAYED", "RETRIED", "DROPPED").Default("OPEN").
			Comment("RETRIED = replayed once without a decision"),
		instant("created_at"),
		field.Time("ended_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("when it left OPEN; the row is deleted later"),
	}
}

// Indexes of DeadLetter. An entry may become a letter again after its decision, when Redis went
// back to an older state.
func (DeadLetter) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("stream", "entry").Unique().StorageKey("dead_letter_once").
			Annotations(entsql.IndexWhere("state = 'OPEN'")),
		index.Fields("id").StorageKey("dead_letter_open").Annotations(entsql.IndexWhere("state = 'OPEN'")),
		index.Fields("message_id").StorageKey("dead_letter_retried").Annotations(entsql.IndexWhere("state = 'RETRIED'")),
		index.Fields("ended_at"),
	}
}
