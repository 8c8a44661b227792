package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"seckill/internal/platform/id"
)

// SaleApproval is what buyers would see of a sale when it was approved. It is written in the
// transaction of the approval and never changed; the log of the sale has its hash.
type SaleApproval struct{ ent.Schema }

func (SaleApproval) Fields() []ent.Field {
	return []ent.Field{
		key(id.Sale{}),
		field.UUID("approved_by", id.User{}).Immutable(),
		field.Text("terms").Immutable().Comment("JSON with a version"),
		instant("created_at"),
	}
}
