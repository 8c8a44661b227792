-- +goose NO TRANSACTION
-- +goose Up
-- Sales are changed while the index is built. A build that was interrupted leaves an invalid one.
DROP INDEX CONCURRENTLY IF EXISTS "sale_settled_at_ends_at";
-- create index "sale_settled_at_ends_at" to table: "sales"
CREATE INDEX CONCURRENTLY "sale_settled_at_ends_at" ON "sales" ("settled_at", "ends_at");

-- +goose Down
-- reverse: create index "sale_settled_at_ends_at" to table: "sales"
DROP INDEX CONCURRENTLY IF EXISTS "sale_settled_at_ends_at";
