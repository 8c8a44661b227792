-- +goose NO TRANSACTION
-- +goose Up
-- Tasks fail while the index is built. A build that was interrupted leaves an invalid one.
-- create index "orderfailure_returns" to table: "order_failures"
DROP INDEX CONCURRENTLY IF EXISTS "orderfailure_returns";
CREATE INDEX CONCURRENTLY "orderfailure_returns" ON "order_failures" ("id") WHERE (NOT released);
-- drop index "orderfailure_released" from table: "order_failures"
DROP INDEX CONCURRENTLY IF EXISTS "orderfailure_released";

-- +goose Down
-- reverse: drop index "orderfailure_released" from table: "order_failures"
DROP INDEX CONCURRENTLY IF EXISTS "orderfailure_released";
CREATE INDEX CONCURRENTLY "orderfailure_released" ON "order_failures" ("released");
-- reverse: create index "orderfailure_returns" to table: "order_failures"
DROP INDEX CONCURRENTLY IF EXISTS "orderfailure_returns";
