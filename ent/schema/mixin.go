// Package schema declares the tables. It is the source of the SQL in
// migrations/ and of the generated client in ent/, and imports nothing of ours
// but the types of ids.
//
// Conventions: ids are UUIDv7 made by the caller before anything else happens;
// money is a bigint in minor units beside its ISO 4217 currency; every instant
// is given by the caller, in UTC, so that one operation has one clock reading.
package schema

import (
	"database/sql/driver"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema/field"
)

// key is the primary key shared by all tables: a UUID chosen by the caller, of the given
// type.
func key(of driver.Valuer) ent.Field {
	return field.UUID("id", of).Immutable()
}

// instant is a required point in time with the precision of the database.
func instant(name string) ent.Field {
	return field.Time(name).SchemaType(timestamptz)
}

// timestamptz stores instants with their zone on Postgres; SQLite keeps its default.
var timestamptz = map[string]string{dialect.Postgres: "timestamptz"}

// currency is an ISO 4217 code.
func currency() ent.Field {
	return field.String("currency").MinLen(3).MaxLen(3).Immutable()
}
