-- +goose NO TRANSACTION
-- +goose Up
-- Entries are written while the indexes are built. A build that was interrupted leaves an invalid one; the former
-- indexes are dropped when the new ones hold.
-- create index "waitlist_undrawn" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_undrawn";
CREATE INDEX CONCURRENTLY "waitlist_undrawn" ON "waitlist_entries" ("item_id", "id") WHERE (nonce IS NOT NULL AND line = 0);
-- create index "waitlist_order" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_order";
CREATE INDEX CONCURRENTLY "waitlist_order" ON "waitlist_entries" ("item_id", "line", "id") WHERE (status = 'WAITING');
-- create index "waitlist_turns" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_turns";
CREATE INDEX CONCURRENTLY "waitlist_turns" ON "waitlist_entries" ("item_id", "line") WHERE (line > 0 AND status <> 'WAITING');
-- create index "waitlist_open_per_address_and_item" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_address_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_address_and_item" ON "waitlist_entries" ("item_id", "address_key") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED'));
-- create index "waitlist_open_per_contact_and_item" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_contact_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_contact_and_item" ON "waitlist_entries" ("item_id", "contact_key") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED'));
-- create index "waitlist_open_per_user_and_item" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_user_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_open_per_user_and_item" ON "waitlist_entries" ("item_id", "user_id") WHERE (status IN ('ENTERED', 'WAITING', 'OFFERED'));
-- drop index "waitlist_line" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_line";
-- drop index "waitlist_one_place_per_address_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_address_and_item";
-- drop index "waitlist_one_place_per_contact_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_contact_and_item";
-- drop index "waitlist_one_place_per_user_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_user_and_item";

-- +goose Down
-- reverse: drop index "waitlist_one_place_per_user_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_user_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_one_place_per_user_and_item" ON "waitlist_entries" ("item_id", "user_id") WHERE (status IN ('WAITING', 'OFFERED'));
-- reverse: drop index "waitlist_one_place_per_contact_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_contact_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_one_place_per_contact_and_item" ON "waitlist_entries" ("item_id", "contact_key") WHERE (status IN ('WAITING', 'OFFERED'));
-- reverse: drop index "waitlist_one_place_per_address_and_item" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_address_and_item";
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_one_place_per_address_and_item" ON "waitlist_entries" ("item_id", "address_key") WHERE (status IN ('WAITING', 'OFFERED'));
-- reverse: drop index "waitlist_line" from table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_line";
CREATE INDEX CONCURRENTLY "waitlist_line" ON "waitlist_entries" ("item_id", "id") WHERE (status = 'WAITING');
-- reverse: create index "waitlist_open_per_user_and_item" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_user_and_item";
-- reverse: create index "waitlist_open_per_contact_and_item" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_contact_and_item";
-- reverse: create index "waitlist_open_per_address_and_item" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_open_per_address_and_item";
-- reverse: create index "waitlist_order" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_order";
-- reverse: create index "waitlist_undrawn" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_undrawn";
-- reverse: create index "waitlist_turns" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_turns";
