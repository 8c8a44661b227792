-- +goose NO TRANSACTION
-- +goose Up
-- Entries are written while the index is built. A build that was interrupted leaves an invalid one.
-- create index "waitlist_members" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_members";
CREATE INDEX CONCURRENTLY "waitlist_members" ON "waitlist_entries" ("item_id", "line", "id") WHERE (((status)::text = 'WAITING'::text) AND (access_keys IS NOT NULL));

-- +goose Down
-- reverse: create index "waitlist_members" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_members";
