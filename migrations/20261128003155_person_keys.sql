-- +goose Up
-- modify "orders" table
ALTER TABLE "orders" ADD COLUMN "return_at" timestamptz NULL, ADD COLUMN "person_keys" character varying NULL, ADD COLUMN "payment_key" character varying NULL;
-- modify "payment_events" table
ALTER TABLE "payment_events" ADD COLUMN "payer" character varying NULL;
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "limit_by" character varying NOT NULL DEFAULT '';
-- modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" ADD COLUMN "contact_key" character varying NULL, ADD COLUMN "address_key" character varying NULL;

-- +goose Down
-- reverse: modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" DROP COLUMN "address_key", DROP COLUMN "contact_key";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "limit_by";
-- reverse: modify "payment_events" table
ALTER TABLE "payment_events" DROP COLUMN "payer";
-- reverse: modify "orders" table
ALTER TABLE "orders" DROP COLUMN "payment_key", DROP COLUMN "person_keys", DROP COLUMN "return_at";
