-- +goose NO TRANSACTION
-- +goose Up
-- Refunds are written while the indexes are built. A build that was interrupted leaves an invalid one.
ALTER TABLE "orders" VALIDATE CONSTRAINT "not_over_refunded";
DROP INDEX CONCURRENTLY IF EXISTS "refund_one_whole_per_transaction";
-- create index "refund_one_whole_per_transaction" to table: "refunds"
CREATE UNIQUE INDEX CONCURRENTLY "refund_one_whole_per_transaction" ON "refunds" ("payment_id", "transaction") WHERE (status <> 'REJECTED' AND quantity = 0);
DROP INDEX CONCURRENTLY IF EXISTS "refund_one_open_per_transaction";
-- create index "refund_one_open_per_transaction" to table: "refunds"
CREATE UNIQUE INDEX CONCURRENTLY "refund_one_open_per_transaction" ON "refunds" ("payment_id", "transaction") WHERE (status IN ('REQUESTED', 'SENDING'));
-- drop index "refund_one_per_transaction" from table: "refunds"
DROP INDEX CONCURRENTLY IF EXISTS "refund_one_per_transaction";

-- +goose Down
-- reverse: drop index "refund_one_per_transaction" from table: "refunds"
CREATE UNIQUE INDEX CONCURRENTLY "refund_one_per_transaction" ON "refunds" ("payment_id", "transaction") WHERE ((status)::text <> 'REJECTED'::text);
-- reverse: create index "refund_one_open_per_transaction" to table: "refunds"
DROP INDEX CONCURRENTLY IF EXISTS "refund_one_open_per_transaction";
-- reverse: create index "refund_one_whole_per_transaction" to table: "refunds"
DROP INDEX CONCURRENTLY IF EXISTS "refund_one_whole_per_transaction";
