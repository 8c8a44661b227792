-- +goose NO TRANSACTION
-- +goose Up
-- A build that was interrupted leaves an invalid index.
DROP INDEX CONCURRENTLY IF EXISTS "sandboxcharge_call_due";
-- create index "sandboxcharge_call_due" to table: "sandbox_charges"
CREATE INDEX CONCURRENTLY "sandboxcharge_call_due" ON "sandbox_charges" ("call_due") WHERE (call_times > 0);

-- +goose Down
-- reverse: create index "sandboxcharge_call_due" to table: "sandbox_charges"
DROP INDEX CONCURRENTLY "sandboxcharge_call_due";
