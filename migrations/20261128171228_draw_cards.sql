-- +goose Up
-- modify "payments" table
ALTER TABLE "payments" ADD COLUMN "entry_id" uuid NULL, ADD COLUMN "hold" character varying NOT NULL DEFAULT 'NONE';
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "authorize_entries" boolean NOT NULL DEFAULT false;
-- modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" ADD COLUMN "card" character varying NOT NULL DEFAULT 'NONE', ADD COLUMN "payment_key" character varying NULL;

-- +goose Down
-- reverse: modify "waitlist_entries" table
ALTER TABLE "waitlist_entries" DROP COLUMN "payment_key", DROP COLUMN "card";
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "authorize_entries";
-- reverse: modify "payments" table
ALTER TABLE "payments" DROP COLUMN "hold", DROP COLUMN "entry_id";
