package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"seckill/internal/platform/id"
)

// User is a person with an account.
type User struct{ ent.Schema }

func (User) Fields() []ent.Field {
	return []ent.Field{
		key(id.User{}),
		field.String("account").MaxLen(254).Comment("normalised e-mail address or E.164 phone number"),
		field.String("display_name").MaxLen(4 * 32),
		field.String("password_hash").Sensitive().Comment("argon2id, encoded with its parameters"),
		field.Enum("role").Values("CUSTOMER", "OPERATOR", "ADMIN").Default("CUSTOMER"),
		field.Int64("version").Default(1).Comment("grows with every change of the user; invalidates caches"),
		instant("created_at"),
		field.Time("disabled_at").Optional().Nillable().SchemaType(timestamptz).Comment("since when the user cannot sign in"),
		field.String("disabled_reason").MaxLen(4 * 200).Default(""),
		field.Bytes("totp_secret").Optional().Sensitive().Comment("sealed by a key derived from the signing key"),
		field.Time("totp_since").Optional().Nillable().SchemaType(timestamptz).
			Comment("since when sign-in needs a one-time code; null while enrolment is not confirmed"),
		field.Int64("totp_step").Default(0).Comment("time step of the newest used code: no code is used twice"),
		field.Time("verified_at").Optional().Nillable().SchemaType(timestamptz).
			Comment("since when it is known that the user reads the account's address"),
		field.String("language").MaxLen(8).Default("").Comment("of e-mails: en or zh; empty = not known"),
		field.String("external_id").MaxLen(255).Optional().Nillable().Comment("its id in another system; null = none"),
		field.Text("claims").Default("").Comment("JSON: what its sign-in provider states, of the claims that its settings name"),
		field.String("recovery_codes").Default("").Sensitive().
			Comment("SHA-256 of the unused recovery codes, separated by spaces"),
	}
}

func (User) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("account").Unique(),
		// most users have none
		index.Fields("external_id").Unique().Annotations(entsql.IndexWhere("external_id IS NOT NULL")),
		// what every process asks every few seconds
		index.Fields("disabled_at").Annotations(entsql.IndexWhere("disabled_at IS NOT NULL")),
	}
}
