-- +goose NO TRANSACTION
-- +goose Up
-- Payments are stored while the indexes are built. A build that was interrupted leaves an invalid one.
DROP INDEX CONCURRENTLY IF EXISTS "payment_provider_ref";
DROP INDEX CONCURRENTLY IF EXISTS "payment_transaction";
-- create index "payment_provider_ref" to table: "payments"
CREATE INDEX CONCURRENTLY "payment_provider_ref" ON "payments" ("provider_ref");
-- create index "payment_transaction" to table: "payments"
CREATE INDEX CONCURRENTLY "payment_transaction" ON "payments" ("transaction");

-- +goose Down
-- reverse: create index "payment_transaction" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_transaction";
-- reverse: create index "payment_provider_ref" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_provider_ref";
