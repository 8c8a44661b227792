package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// RecordMark is a counter in a single row, by which the schedulers notice that Postgres has
// lost commits: Redis and the processes remember a higher one.
type RecordMark struct{ ent.Schema }

func (RecordMark) Fields() []ent.Field {
	return []ent.Field{
		field.Int("id").Immutable().Comment("always 1"),
		field.Int64("mark").Default(0).Comment("grows every second"),
		field.Int64("system_id").Default(0).Comment("system identifier of the server that wrote the mark; 0 = not known"),
		field.Int64("timeline").Default(0).Comment(
			"timeline of that server: grows with each promotion and each restore to a point in time; 0 = not known"),
		field.Int64("database_id").Default(0).
			Comment("OID of the database: another one was restored in its place; 0 = not known"),
		field.Int64("lost").Default(0).Comment("mark at which commits were last found to be lost; 0 = never"),
		field.Int64("recovered").Default(0).Comment("mark of the last loss from which the gates and copies were recovered"),
		instant("marked_at"),
		field.Time("lost_at").Optional().Nillable().SchemaType(timestamptz).Comment("when the last loss was found"),
	}
}
