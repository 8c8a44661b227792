package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// WaitlistEntry is the place of a buyer in the waitlist of an item: in a rush since it is sold
// out, in a draw since the buyer entered. The order is that of line, then of the ids, which are
// UUIDv7.
type WaitlistEntry struct{ ent.Schema }

func (WaitlistEntry) Fields() []ent.Field {
	return []ent.Field{
		key(id.Waitlist{}),
		field.UUID("sale_id", id.Sale{}).Immutable(),
		field.UUID("item_id", id.Item{}).Immutable(),
		field.UUID("user_id", id.User{}).Immutable(),
		field.Int("quantity").Positive().Immutable(),
		field.Enum("status").Values("ENTERED", "WAITING", "OFFERED", "REDEEMED", "EXPIRED", "LEFT").Default("WAITING"),
		field.Int64("version").Default(1).Comment("compare-and-set guard"),
		field.Time("offer_expires_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("until when a unit is held, once OFFERED"),
		field.UUID("order_id", id.Task{}).Optional().Nillable().Comment("the order task, once REDEEMED"),
		field.Bool("return_due").Default(false).
			Comment("whether what is held in Redis for an expired or left offer is still to be given back"),
		field.String("contact_key").MaxLen(32).Optional().Nillable().Comment("as person_keys of an order"),
		field.String("address_key").MaxLen(32).Optional().Nillable(),
		field.String("nonce").MaxLen(64).Optional().Nillable().Immutable().
			Comment("of the buyer, in the leaf of the draw; null = not an entry of a draw"),
		field.Int64("line").NonNegative().Default(0).Comment("number in the draw from 1 on; 0 = not drawn"),
		field.String("skipped").MaxLen(16).Default("").Comment("why it ended without an offer, if the buyer did not leave: a draw.Reason"),
		field.String("access_keys").MaxLen(32).Optional().Nillable().Comment("what access rules count of the buyer, as in person_keys"),
		field.Enum("card").Values("NONE", "DUE", "AUTHORIZED", "DONE").Default("NONE").
			Comment("DUE: the draw counts it once a card is authorized. DONE: its payment belongs to the order, or is to be closed"),
		field.String("payment_key").MaxLen(32).Optional().Nillable().
			Comment("of the authorized card, as that of an order, where a limit of the sale counts it"),
		instant("created_at"),
		instant("updated_at"),
	}
}

func (WaitlistEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("item_id", "user_id").Unique().StorageKey("waitlist_open_per_user_and_item").
			Annotations(entsql.IndexWhere(openWaitlistEntry)),
		index.Fields("item_id", "contact_key").Unique().StorageKey("waitlist_open_per_contact").
			Annotations(entsql.IndexWhere(openWaitlistEntry + " AND contact_key IS NOT NULL")),
		index.Fields("item_id", "address_key").Unique().StorageKey("waitlist_open_per_address").
			Annotations(entsql.IndexWhere(openWaitlistEntry + " AND address_key IS NOT NULL")),
		index.Fields("item_id", "line", "id").StorageKey("waitlist_order").Annotations(entsql.IndexWhere("status = 'WAITING'")),
		index.Fields("item_id", "line", "id").StorageKey("waitlist_members").
			Annotations(entsql.IndexWhere("status = 'WAITING' AND access_keys IS NOT NULL")),
		index.Fields("item_id", "id").StorageKey("waitlist_undrawn").Annotations(entsql.IndexWhere("nonce IS NOT NULL AND line = 0")),
		index.Fields("item_id", "line").StorageKey("waitlist_turns").Annotations(entsql.IndexWhere("line > 0 AND status <> 'WAITING'")),
		index.Fields("offer_expires_at").StorageKey("waitlist_offers").Annotations(entsql.IndexWhere("status = 'OFFERED'")),
		index.Fields("id").StorageKey("waitlist_returns").Annotations(entsql.IndexWhere("return_due")),
		index.Fields("id").StorageKey("waitlist_card_due").
			Annotations(entsql.IndexWhere("card IN ('DUE', 'AUTHORIZED') AND status NOT IN ('ENTERED', 'WAITING')")),
		index.Fields("sale_id", "payment_key").StorageKey("waitlist_payment_key").
			Annotations(entsql.IndexWhere("payment_key IS NOT NULL")),
		index.Fields("user_id"),
	}
}

// openWaitlistEntry is the predicate of the indexes of open entries.
const openWaitlistEntry = "status IN ('ENTERED', 'WAITING', 'OFFERED')"
