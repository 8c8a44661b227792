package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

var noticeKinds = []string{"ORDER_PLACED", "PAYMENT_DEADLINE", "WAITLIST_OFFER", "REFUND", "SALE_REMINDER", "ADMITTED",
	"ORDER_REVIEW", "DRAW_RESULT", "CHARGE_FAILED"}

// NoticeChoice says by which channels a user wants one kind of notice. Without a row the
// default applies.
type NoticeChoice struct{ ent.Schema }

func (NoticeChoice) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Enum("kind").Values(noticeKinds...).Immutable(),
		field.Bool("mail"),
		field.Bool("hook").Comment("by the operator's own service, such as SMS"),
		field.Bool("push").Default(false).Comment("in the browsers of the user's subscriptions"),
		instant("updated_at"),
	}
}

func (NoticeChoice) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "kind").Unique()}
}

// NoticeFact is a fact that users may want a notice of. It is written in the transaction of
// the fact, and deleted in the transaction that writes the notices.
type NoticeFact struct{ ent.Schema }

func (NoticeFact) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.Enum("kind").Values(noticeKinds...).Immutable(),
		field.Bytes("subjects").Immutable().Comment(
			"JSON: what happened to whom; the orders of one transaction are one fact"),
		field.Time("due_at").SchemaType(timestamptz).Comment("when the notices are written; later after an error"),
		field.Time("until").Immutable().SchemaType(timestamptz).Comment("from when on the notices are of no use"),
		instant("created_at"),
	}
}

func (NoticeFact) Indexes() []ent.Index { return []ent.Index{index.Fields("due_at")} }

// NoticeDelivery is a notice on its way to the operator's own service, or to one browser.
type NoticeDelivery struct{ ent.Schema }

func (NoticeDelivery) Fields() []ent.Field {
	return []ent.Field{
		key(id.Delivery{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Enum("kind").Values(noticeKinds...).Immutable(),
		field.UUID("subject_id", uuid.UUID{}).Immutable().
			Comment("the order, waitlist entry, sale or ticket of the waiting room"),
		field.UUID("subscription_id", id.Device{}).Optional().Nillable().Immutable().
			Comment("of the browser; null = the operator's own service"),
		field.Bytes("payload").Optional().Sensitive().Comment("JSON, as it is sent; empty once it has ended"),
		field.Enum("state").Values("PENDING", "SENT", "GIVEN_UP").Default("PENDING"),
		field.Int("attempts").Default(0).Comment("also guards the result of an attempt"),
		field.Time("due_at").SchemaType(timestamptz).
			Comment("of the next attempt; during one, when another process may repeat it"),
		field.Time("retry_until").Immutable().SchemaType(timestamptz),
		field.String("error").MaxLen(200).Default("").Comment("why the last attempt failed"),
		instant("created_at"),
		field.Time("ended_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (NoticeDelivery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("due_at").StorageKey("notice_delivery_due").Annotations(entsql.IndexWhere("state = 'PENDING'")),
		index.Fields("ended_at"),
		index.Fields("user_id"),
	}
}

// PushSubscription is a browser that receives notices while no tab is open. It is deleted when
// the user signs out, but not when the session expires.
type PushSubscription struct{ ent.Schema }

func (PushSubscription) Fields() []ent.Field {
	return []ent.Field{
		key(id.Device{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.UUID("session_id", id.Session{}).Immutable().Comment("that made it"),
		field.String("endpoint").MaxLen(1024).Immutable().Sensitive().
			Comment("address at the browser's push service; who knows it can send to it"),
		field.Bytes("p256dh").MaxLen(65).Immutable().Sensitive().
			Comment("public key of the browser: an uncompressed point of P-256"),
		field.Bytes("auth").MaxLen(16).Immutable().Sensitive().Comment("secret of the browser for the encryption"),
		field.String("server_key").MaxLen(100).Immutable().
			Comment("public key of the shop that the browser accepts, base64url"),
		field.String("label").MaxLen(4 * 100).Default("").Immutable().Comment("by which the user recognises the browser"),
		instant("created_at"),
		field.Time("sent_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("when the push service last accepted a notice"),
	}
}

func (PushSubscription) Indexes() []ent.Index {
	return []ent.Index{index.Fields("endpoint").Unique(), index.Fields("user_id"), index.Fields("session_id")}
}

// SaleReminder is the wish of a user to get a notice before a sale opens.
type SaleReminder struct{ ent.Schema }

func (SaleReminder) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("user_id", id.User{}).Immutable(),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.Time("sent_for").Optional().Nillable().SchemaType(timestamptz).
			Comment("the opening of which the notice was written; null = none was"),
		instant("created_at"),
	}
}

func (SaleReminder) Indexes() []ent.Index {
	return []ent.Index{index.Fields("sale_id", "user_id").Unique(), index.Fields("user_id")}
}
