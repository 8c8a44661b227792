package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// ItemDraw is the draw of an item of a draw sale. Its first entry creates it.
type ItemDraw struct{ ent.Schema }

func (ItemDraw) Fields() []ent.Field {
	return []ent.Field{
		key(id.Item{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.Enum("state").Values("ENTRIES", "CLOSED", "PUBLISHED", "NUMBERING", "DRAWN").Default("ENTRIES"),
		field.Int("entries").NonNegative().Default(0).Comment("open entries; once PUBLISHED leaves of the tree"),
		field.Bytes("root").Optional().MaxLen(32).Comment("of the Merkle tree of the entries, once PUBLISHED"),
		field.Text("statement").Default("").Comment("signed: item, root, entries, round and time"),
		field.Int64("round").NonNegative().Default(0).Comment("of the beacon, once PUBLISHED; 0 = the source has none"),
		field.String("source").MaxLen(64).Default("").Comment("of the random value that orders the entries, once PUBLISHED"),
		field.Bytes("signature").Optional().MaxLen(48).Comment("of the round, once NUMBERING"),
		field.String("value").MaxLen(200).Default("").Comment("of a source without rounds, once NUMBERING"),
		field.String("value_source").MaxLen(200).Default("").Comment("where operators read the value, if they entered it"),
		field.Int64("told").NonNegative().Default(0).Comment("number up to which those without an offer were notified"),
		field.Time("closed_at").Optional().Nillable().SchemaType(timestamptz),
		field.Time("published_at").Optional().Nillable().SchemaType(timestamptz),
		field.Time("drawn_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (ItemDraw) Indexes() []ent.Index {
	return []ent.Index{index.Fields("sale_id"), index.Fields("state")}
}

// DrawLeaves is a part of the published lists of a draw: of the leaves, which are written with the
// root, and of the order of the draw.
type DrawLeaves struct{ ent.Schema }

func (DrawLeaves) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("item_id", id.Item{}).Immutable(),
		field.Int("first").NonNegative().Immutable().Comment("index of the first leaf of the part"),
		field.Bytes("leaves").Immutable().Comment("32 bytes each"),
		field.Bytes("ranked").Optional().
			Comment("indexes of the leaves that have the ranks of the part, 4 bytes each; null before they are drawn"),
	}
}

func (DrawLeaves) Indexes() []ent.Index {
	return []ent.Index{index.Fields("item_id", "first").Unique()}
}
