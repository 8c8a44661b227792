-- +goose NO TRANSACTION
-- +goose Up
-- Users register while the index is built. A build that was interrupted leaves an invalid one.
DROP INDEX CONCURRENTLY IF EXISTS "user_external_id";
-- create index "user_external_id" to table: "users"
CREATE UNIQUE INDEX CONCURRENTLY "user_external_id" ON "users" ("external_id") WHERE (external_id IS NOT NULL);

-- +goose Down
-- reverse: create index "user_external_id" to table: "users"
DROP INDEX CONCURRENTLY IF EXISTS "user_external_id";
