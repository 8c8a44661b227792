package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

// Payment is one try to pay an order at a provider. Its id is the provider's
// idempotency key, chosen before the provider is asked.
type Payment struct{ ent.Schema }

func (Payment) Fields() []ent.Field {
	return []ent.Field{
		key(id.Payment{}),
		field.UUID("order_id", id.Order{}).Comment("of an authorization for an entry that is not drawn: the entry"),
		field.UUID("entry_id", id.Waitlist{}).Optional().Nillable().Immutable().
			Comment("the entry of a draw that the card is authorized for; null = a payment of an order"),
		field.Enum("hold").Values("NONE", "AUTHORIZE", "SAVE").Default("NONE").Immutable().
			Comment("AUTHORIZE: money is held and captured later. SAVE: the card is saved and charged later"),
		field.UUID("user_id", id.User{}).Immutable(),
		field.String("provider").MaxLen(32).Immutable(),
		field.String("idempotency_key").MaxLen(64).Immutable().Comment("the buyer's, per order"),
		field.Enum("status").Values("CREATING", "PENDING", "AUTHORIZED", "CLOSED", "SUCCEEDED", "REFUNDED").Default("CREATING").
			Comment("CREATING: the provider's answer to the creation is not known yet"),
		field.Int64("amount_minor").NonNegative().Immutable(),
		currency(),
		field.String("product").MaxLen(4 * 120).Default("").Immutable().
			Comment("name at the beginning: repeated calls to the provider send the same; empty in rows of former releases"),
		field.String("language").MaxLen(8).Default("").Immutable().Comment("of the buyer, for the provider's pages"),
		field.String("return_url").MaxLen(2048).Default("").Immutable().
			Comment("page that the provider leads back to; empty = the page of the order in the settings"),
		field.String("provider_ref").MaxLen(128).Default("").Comment("the provider's name for it"),
		field.String("transaction").MaxLen(128).Default("").Comment("the provider's transaction number, once paid"),
		field.String("qr_code").MaxLen(1024).Default(""),
		field.String("redirect_url").MaxLen(4096).Default(""),
		field.String("client_secret").MaxLen(255).Default("").Sensitive().
			Comment("with which the buyer's browser pays on the page; for the buyer only"),
		field.Bool("declined").Default(false).Comment("CLOSED because the provider refused it"),
		field.String("failure_code").MaxLen(32).Default("").
			Comment("why the provider declined the last attempt, of the shop's list"),
		field.Int64("fee_minor").Optional().Nillable().
			Comment("what the provider keeps of the money; absent until it says so"),
		field.String("fee_currency").MaxLen(3).Default("").
			Comment("that of the account at the provider; empty without a fee"),
		field.Enum("dispute").Values("NONE", "OPEN", "WON", "LOST").Default("NONE").Comment("of the buyer, at their bank"),
		field.Int64("version").Default(1).Comment("compare-and-set guard"),
		instant("expires_at"),
		field.Time("check_at").SchemaType(timestamptz).Comment("when to ask the provider how it stands, while open"),
		field.Int("checks").Default(0),
		instant("created_at"),
		instant("updated_at"),
		field.Time("paid_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (Payment) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("order_id", "idempotency_key").Unique(),
		index.Fields("order_id").Unique().StorageKey("payment_one_live_per_order").
			Annotations(entsql.IndexWhere("status IN ('CREATING', 'PENDING', 'AUTHORIZED')")),
		index.Fields("check_at").StorageKey("payment_live_by_check_at").
			Annotations(entsql.IndexWhere("status IN ('CREATING', 'PENDING', 'AUTHORIZED')")),
		index.Fields("entry_id").Annotations(entsql.IndexWhere("entry_id IS NOT NULL")),
		index.Fields("transaction"),  // operators search orders by what a bank statement says
		index.Fields("provider_ref"), // and by what the provider's pages say
		index.Fields("id").StorageKey("payment_disputed").Annotations(entsql.IndexWhere("dispute = 'OPEN'")),
	}
}

// PaymentEvent is something that a provider said about a payment: a call-back,
// or its answer to a question. It is stored before it is acted upon, once.
type PaymentEvent struct{ ent.Schema }

func (PaymentEvent) Fields() []ent.Field {
	return []ent.Field{
		key(id.Held{}),
		field.String("provider").MaxLen(32).Immutable(),
		field.String("event_id").MaxLen(128).Immutable().Comment("the provider's, or one derived from the answer"),
		field.UUID("payment_id", id.Payment{}).Immutable().Comment("our payment, as the provider names it; may be unknown"),
		field.Enum("kind").Values("SUCCEEDED", "DECLINED", "CLOSED", "ATTEMPT_DECLINED", "AUTHORIZED", "REFUND_FAILED", "REFUNDED",
			"DISPUTED", "DISPUTE_WON", "DISPUTE_LOST").Immutable().
			Comment("REFUNDED: the amount is all that went back of the payment so far"),
		field.Int64("amount_minor").Immutable(),
		currency(),
		field.String("provider_ref").MaxLen(128).Default("").Immutable(),
		field.String("transaction").MaxLen(128).Default("").Immutable(),
		field.String("payer").MaxLen(64).Optional().Nillable().
			Comment("keyed hash of the means of payment, while a limit of the sale may count it"),
		field.UUID("refund_key", id.Refund{}).Optional().Nillable().Immutable().
			Comment("REFUND_FAILED: the idempotency key of the refund"),
		field.String("reason").MaxLen(200).Default("").Immutable().
			Comment("REFUND_FAILED: in the provider's words; declined: a code of the shop's list"),
		field.Enum("state").Values("RECEIVED", "HANDLED", "HELD").Default("RECEIVED").
			Comment("HELD: a person must look at it"),
		field.String("outcome").MaxLen(4 * 256).Default("").Comment("what was done, or why it is held"),
		field.Int("tries").Default(0),
		field.Time("try_at").SchemaType(timestamptz).Comment("when to handle it, unless its message comes first"),
		instant("happened_at"),
		instant("created_at"),
		field.Time("handled_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (PaymentEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("provider", "event_id").Unique(),
		index.Fields("payment_id"),
		index.Fields("try_at").StorageKey("paymentevent_open_by_try_at").Annotations(entsql.IndexWhere("state = 'RECEIVED'")),
		index.Fields("state").StorageKey("paymentevent_held").Annotations(entsql.IndexWhere("state = 'HELD'")),
	}
}

// Refund is money that goes back, or was asked back. Its id is the provider's
// idempotency key of the first attempt. The money that paid an order goes back whole or by units, in one
// refund at a time. Money that pays no units goes back once and whole: at most one refund of it was not rejected.
type Refund struct{ ent.Schema }

func (Refund) Fields() []ent.Field {
	return []ent.Field{
		key(id.Refund{}),
		field.UUID("order_id", id.Order{}).Immutable(),
		field.UUID("payment_id", id.Payment{}).Immutable(),
		field.String("transaction").MaxLen(128).Default("").Immutable().
			Comment("the provider's transaction that goes back; empty = the payment's own"),
		field.String("idempotency_key").MaxLen(64).Immutable().Comment("the asker's, per order"),
		field.Enum("cause").Values("ASKED", "VOIDED", "LATE", "DOUBLE", "OUTSIDE").Immutable().
			Comment("OUTSIDE: a part that went back on the provider's pages, of no units. LATE, DOUBLE: money that came for an order that could not take it goes back by itself"),
		field.Enum("status").Values("REQUESTED", "REJECTED", "SENDING", "SUCCEEDED", "FAILED", "SETTLED").
			Comment("SENDING: decided; the provider is to be asked until it says done. FAILED: the provider gave up, maybe after it had said done. SETTLED: given back outside the provider"),
		field.Int("attempts").Default(1).Comment(
			"the provider's idempotency key is of one attempt; an operator may order another after FAILED"),
		field.String("failure").MaxLen(200).Default("").Comment("of the last attempt, in the provider's words"),
		field.Int64("amount_minor").NonNegative().Immutable(),
		currency(),
		field.Int("quantity").NonNegative().Default(0).Immutable().
			Comment("units of the order that go back with the money; 0 = none, for LATE and DOUBLE, and all in rows of the first releases"),
		field.Bool("applied").Default(false).Comment(
			"whether the order was moved by it: it may fail later, and be sent again"),
		field.String("reason").MaxLen(4 * 200).Immutable(),
		field.Bool("restock").Default(true).Comment("whether the units go back on sale"),
		field.UUID("decided_by", id.User{}).Optional().Nillable(),
		field.Time("decided_at").Optional().Nillable().SchemaType(timestamptz).Comment("by an operator, or by itself"),
		field.String("decision").MaxLen(4 * 200).Default("").Comment("remark of the operator"),
		field.Int64("version").Default(1).Comment("compare-and-set guard"),
		field.Int("tries").Default(0),
		field.Time("try_at").SchemaType(timestamptz).Comment("when to ask the provider next, while SENDING"),
		instant("created_at"),
		instant("updated_at"),
	}
}

func (Refund) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("order_id", "idempotency_key").Unique(),
		index.Fields("payment_id", "transaction").Unique().StorageKey("refund_one_whole_per_transaction").
			Annotations(entsql.IndexWhere("status <> 'REJECTED' AND quantity = 0")),
		index.Fields("payment_id", "transaction").Unique().StorageKey("refund_one_open_per_transaction").
			Annotations(entsql.IndexWhere("status IN ('REQUESTED', 'SENDING')")),
		index.Fields("try_at").StorageKey("refund_sending_by_try_at").Annotations(entsql.IndexWhere("status = 'SENDING'")),
		index.Fields("status", "id"),
	}
}

// SandboxCharge is a payment in the ledger of the built-in provider, which knows nothing of
// our orders, with its refunds and the call-back that is owed to the merchant. No code of
// ours but the sandbox reads it.
type SandboxCharge struct{ ent.Schema }

func (SandboxCharge) Fields() []ent.Field {
	return []ent.Field{
		key(uuid.UUID{}),
		field.UUID("merchant_payment", id.Payment{}).Unique().Immutable().Comment("the merchant's idempotency key"),
		field.String("description").MaxLen(200).Immutable(),
		field.String("language").MaxLen(8).Default("").Immutable().Comment("of the page; empty = that of the browser"),
		field.String("return_url").MaxLen(2048).Default("").Immutable().Comment("page of the merchant that its page leads back to"),
		field.Int64("amount_minor").NonNegative().Immutable(),
		currency(),
		field.Enum("status").Values("OPEN", "PAID", "DECLINED", "CLOSED").Default("OPEN"),
		field.String("transaction").MaxLen(64).Default(""),
		field.String("decline_code").MaxLen(32).Default("").Comment("why it was declined"),
		field.Int64("refunded_minor").NonNegative().Default(0),
		field.Int64("version").Default(1),
		instant("expires_at"),
		instant("created_at"),
		field.Time("settles_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("when an approval takes effect that the payer wanted late; nothing stops it then"),
		field.Time("paid_at").Optional().Nillable().SchemaType(timestamptz),
		field.JSON("refunds", map[string]int64{}).Optional().Comment("amounts by the merchant's idempotency keys"),
		field.Bytes("call").Optional().Comment("body of the call-back that reports the result"),
		field.Int("call_times").NonNegative().Default(0).
			Comment("how often it is still to be delivered; above 1 to try the merchant"),
		field.Int("call_tries").Default(0).Comment("also guards the result of a try"),
		field.Time("call_due").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (SandboxCharge) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("settles_at").Annotations(entsql.IndexWhere("settles_at IS NOT NULL")),
		index.Fields("call_due").StorageKey("sandboxcharge_call_due").Annotations(entsql.IndexWhere("call_times > 0")),
	}
}

func (SandboxCharge) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Checks: map[string]string{
		"sandbox_not_over_refunded": "refunded_minor <= amount_minor",
	}}}
}
