-- +goose NO TRANSACTION
-- +goose Up
-- Entries are written while the indexes are built. A build that was interrupted leaves an invalid one; the former
-- indexes, which hold entries without a key, too, are dropped when the new ones hold.
-- create index "waitlist_open_per_contact" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_contact";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_contact" ON "waitlist_entries" ("item_id", "contact_key") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED') AND contact_key IS NOT NULL);
-- create index "waitlist_open_per_address" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_address";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_address" ON "waitlist_entries" ("item_id", "address_key") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED') AND address_key IS NOT NULL);
-- drop index "waitlist_open_per_contact_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_contact_and_item";
-- drop index "waitlist_open_per_address_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_address_and_item";

-- +goose Down
-- reverse: drop index "waitlist_open_per_address_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_address_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_address_and_item" ON "waitlist_entries" ("item_id", "address_key") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED'));
-- reverse: drop index "waitlist_open_per_contact_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_contact_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_contact_and_item" ON "waitlist_entries" ("item_id", "contact_key") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED'));
-- reverse: create index "waitlist_open_per_address" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_address";
-- reverse: create index "waitlist_open_per_contact" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_contact";
