-- +goose NO TRANSACTION
-- +goose Up
-- Payments are stored while the index is built. A build that was interrupted leaves an invalid one.
DROP INDEX CONCURRENTLY IF EXISTS "payment_disputed";
-- create index "payment_disputed" to table: "payments"
CREATE INDEX CONCURRENTLY "payment_disputed" ON "payments" ("id") WHERE ((dispute)::text = 'OPEN'::text);

-- +goose Down
-- reverse: create index "payment_disputed" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_disputed";
