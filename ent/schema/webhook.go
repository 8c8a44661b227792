package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// WebhookEndpoint is an address of another system that receives events.
type WebhookEndpoint struct{ ent.Schema }

func (WebhookEndpoint) Fields() []ent.Field {
	return []ent.Field{
		key(id.Endpoint{}),
		field.String("url").MaxLen(1024),
		field.String("description").MaxLen(4 * 200).Default(""),
		field.String("kinds").MaxLen(512).Default("").Comment("of events, comma separated; empty = all"),
		field.Enum("state").Values("ENABLED", "DISABLED", "DELETED").Default("ENABLED").
			Comment("DELETED: its deliveries are being removed"),
		field.String("reason").MaxLen(200).Default("").Comment("why it was disabled; empty = an administrator did it"),
		field.Bytes("secret").MaxLen(256).Comment("signs; sealed with a key derived from the signing key"),
		field.Bytes("previous_secret").MaxLen(256).Optional().Comment("signs too until previous_until; sealed"),
		field.Time("previous_until").Optional().Nillable().SchemaType(timestamptz),
		field.Time("failing_since").Optional().Nillable().SchemaType(timestamptz).
			Comment("first failure after the last success"),
		instant("created_at"),
		instant("updated_at"),
	}
}

// WebhookEvent is a fact that is published to other systems. It is written in the transaction
// of the fact.
type WebhookEvent struct{ ent.Schema }

func (WebhookEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Immutable().Comment("grows: of two events of a subject, the later one has the higher id"),
		field.UUID("message_id", id.Event{}).Immutable().Comment("the receiver's key against duplicates"),
		field.String("kind").MaxLen(64).Immutable(),
		field.String("subject").MaxLen(64).Immutable().
			Comment("public id of the order, sale or item; its events are delivered in order"),
		field.Bytes("payload").Immutable().Comment("the body as it is sent, JSON"),
		field.Int64("batch").Default(0).Comment("in which it was given to endpoints; grows; 0 = not yet"),
		instant("created_at"),
	}
}

func (WebhookEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("id").StorageKey("webhookevent_new").Annotations(entsql.IndexWhere("batch = 0")),
		index.Fields("batch", "id"),
		index.Fields("created_at"),
	}
}

// WebhookDelivery is an event on its way to one endpoint, and afterwards a line of the
// delivery log.
type WebhookDelivery struct{ ent.Schema }

func (WebhookDelivery) Fields() []ent.Field {
	return []ent.Field{
		key(id.Delivery{}),
		field.UUID("endpoint_id", id.Endpoint{}).Immutable(),
		field.Int64("event_id").Immutable(),
		field.String("subject").MaxLen(64).Immutable().Comment("of the event"),
		field.Enum("state").Values("PENDING", "DELIVERED", "GIVEN_UP").Default("PENDING"),
		field.Int("attempts").Default(0).Comment("also guards the result of an attempt"),
		field.Time("due_at").SchemaType(timestamptz).
			Comment("of the next attempt; during one, when another process may repeat it"),
		field.Time("retry_until").SchemaType(timestamptz),
		field.Int("status_code").Default(0).Comment("of the last response; 0 = none"),
		field.String("error").MaxLen(200).Default("").Comment("why the last attempt failed"),
		field.Int("duration_ms").Default(0).Comment("of the last attempt"),
		instant("created_at"),
		field.Time("ended_at").Optional().Nillable().SchemaType(timestamptz),
	}
}

func (WebhookDelivery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("endpoint_id", "event_id").Unique(),
		index.Fields("endpoint_id", "due_at").StorageKey("webhookdelivery_due").
			Annotations(entsql.IndexWhere("state = 'PENDING'")),
		index.Fields("endpoint_id", "subject", "event_id").StorageKey("webhookdelivery_order").
			Annotations(entsql.IndexWhere("state = 'PENDING'")),
		index.Fields("created_at").StorageKey("webhookdelivery_waiting").Annotations(entsql.IndexWhere("state = 'PENDING'")),
		index.Fields("endpoint_id", "id"),
		index.Fields("created_at"),
	}
}
