package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// LogPosition is the place of a sealed entry in the chain of its sale's log. The sealer
// writes it, not the transaction of the entry. Its id is that of the line of sale_logs or
// stock_movements.
type LogPosition struct{ ent.Schema }

func (LogPosition) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.Int64("position").Positive().Immutable().Comment("in the log of the sale, from 1"),
	}
}

func (LogPosition) Indexes() []ent.Index {
	return []ent.Index{index.Fields("sale_id", "position").Unique()}
}
