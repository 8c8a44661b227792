-- +goose NO TRANSACTION
-- +goose Up
-- Acceptances are logged while the index is built. A build that was interrupted leaves an invalid one.
-- create index "acceptance_nodes" to table: "acceptance_entries"
DROP INDEX CONCURRENTLY IF EXISTS "acceptance_nodes";
CREATE INDEX CONCURRENTLY "acceptance_nodes" ON "acceptance_entries" ("sale_id", "position") WHERE (nodes IS NOT NULL);

-- +goose Down
-- reverse: create index "acceptance_nodes" to table: "acceptance_entries"
DROP INDEX CONCURRENTLY IF EXISTS "acceptance_nodes";
