package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// Sale is a flash sale: a window and rules for some items.
type Sale struct{ ent.Schema }

func (Sale) Fields() []ent.Field {
	return []ent.Field{
		key(id.Sale{}),
		field.String("slug").MaxLen(64),
		field.String("external_reference").MaxLen(64).Optional().Nillable().Comment("id in another system; null = none"),
		field.String("title").MaxLen(4 * 120), // bytes: 120 characters
		field.Text("rules").Default(""),
		field.Enum("status").Values(
			"DRAFT", "PENDING_APPROVAL", "REJECTED", "APPROVED", "SCHEDULED",
			"PREHEATED", "LIVE", "PAUSED", "ENDED", "CANCELLED",
		).Default("DRAFT"),
		instant("starts_at"),
		instant("ends_at"),
		instant("preheat_at"),
		field.Int("payment_window_seconds").Positive(),
		field.Int("purchase_limit").Positive().
			Comment("largest purchase limit of the items; the limit of items without their own, which release 0.1 writes"),
		field.Int("total_limit").Optional().Nillable().Positive().Comment("units per buyer over all items; null = no limit"),
		field.Bool("hide_exact_stock").Default(false),
		field.Bool("requires_address").Default(false).Comment("whether an order has the buyer's address"),
		field.Bool("requires_verified_contact").Default(false).Comment("whether buyers need a verified address or number"),
		field.Int("minimum_account_age_hours").NonNegative().Default(0).
			Comment("least age of a buyer's account at the opening; 0 = any"),
		field.String("limit_by").Default("").Comment(
			"what purchase limits count beside the account: CONTACT, ADDRESS, PAYMENT; comma separated"),
		field.Text("access").Default("").Comment("JSON of access.Rules; empty = everyone from the opening on"),
		field.Text("access_codes").Default("").Comment("JSON of accesscode.Batches; empty = none"),
		field.Bool("private").Default(false).Comment("whether only buyers with access see the sale"),
		field.Int("entry_seconds").NonNegative().Default(0).
			Comment("how long after the opening a draw takes entries; 0 = the sale is a rush"),
		field.Int("offer_seconds").NonNegative().Default(0).Comment("lifetime of the offers of a draw"),
		field.Bool("authorize_entries").Default(false).
			Comment("whether an entry of the draw counts only once a card is authorized for it"),
		field.String("accent").MaxLen(7).Default("").
			Comment("accent colour of its page, #rrggbb; empty = that of the installation"),
		field.Int64("epoch").Default(0).Comment("grows each time the gate in Redis is rebuilt; 0 = never loaded"),
		field.Int64("revision").Default(1),
		field.UUID("created_by", id.User{}).Optional().Nillable(),
		instant("created_at"),
		field.String("notice").MaxLen(4 * 200).Default("").Comment("why the sale is held or over, for buyers"),
		field.Bool("was_public").Default(false).Comment("of a cancelled sale: buyers saw it before"),
		field.Time("settled_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("when the last order had ended and the gate left Redis"),
		// Switches: what operators change while the sale runs.
		field.Bool("captcha_required").Default(true),
		field.String("captcha_kinds").Default("").Comment("comma separated; empty = every kind"),
		field.Int("pow_max").NonNegative().Default(0).
			Comment("highest number of a proof of work; 0 = the server's default"),
		field.Int("permit_per_mille").NonNegative().Default(1500).
			Comment("unused paths at a time per thousand units left; 0 = any number"),
		field.Int("inflow_per_second").NonNegative().Default(0).Comment("buyers let past the waiting room; 0 = no bound"),
		field.Int("review_accounts").NonNegative().Default(0).
			Comment("accounts of a cluster whose unpaid orders are held for review; 0 = none are"),
		field.Int("limit_burst").NonNegative().Default(0).Comment("tries of one person at once; 0 = the product's default"),
		field.Float("limit_per_second").Min(0).Default(0).Comment("tries given back; with limit_burst"),
	}
}

func (Sale) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("slug").Unique(),
		index.Fields("external_reference").Unique(),
		index.Fields("starts_at", "id"),
		index.Fields("created_at", "id"),
		index.Fields("status"),
		index.Fields("ends_at"),
		index.Fields("settled_at", "ends_at"),
	}
}
