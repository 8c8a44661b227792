-- +goose NO TRANSACTION
-- +goose Up
-- Rows are written while the indexes are built. A build that was interrupted leaves an invalid one; the former indexes
-- are dropped when the new ones hold.
-- create index "payment_one_live_per_order" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_one_live_per_order";
CREATE UNIQUE INDEX CONCURRENTLY "payment_one_live_per_order" ON "payments" ("order_id") WHERE (status IN ('CREATING', 'PENDING', 'AUTHORIZED'));
-- create index "payment_live_by_check_at" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_live_by_check_at";
CREATE INDEX CONCURRENTLY "payment_live_by_check_at" ON "payments" ("check_at") WHERE (status IN ('CREATING', 'PENDING', 'AUTHORIZED'));
-- create index "payment_entry_id" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_entry_id";
CREATE INDEX CONCURRENTLY "payment_entry_id" ON "payments" ("entry_id") WHERE (entry_id IS NOT NULL);
-- create index "waitlist_card_due" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_card_due";
CREATE INDEX CONCURRENTLY "waitlist_card_due" ON "waitlist_entries" ("id") WHERE (card IN ('DUE', 'AUTHORIZED') AND status NOT IN ('ENTERED', 'WAITING'));
-- create index "waitlist_payment_key" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_payment_key";
CREATE INDEX CONCURRENTLY "waitlist_payment_key" ON "waitlist_entries" ("sale_id", "payment_key") WHERE (payment_key IS NOT NULL);
-- drop index "payment_one_open_per_order" from table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_one_open_per_order";
-- drop index "payment_open_by_check_at" from table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_open_by_check_at";

-- +goose Down
-- reverse: drop index "payment_open_by_check_at" from table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_open_by_check_at";
CREATE INDEX CONCURRENTLY "payment_open_by_check_at" ON "payments" ("check_at") WHERE (status IN ('CREATING', 'PENDING'));
-- reverse: drop index "payment_one_open_per_order" from table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_one_open_per_order";
CREATE UNIQUE INDEX CONCURRENTLY "payment_one_open_per_order" ON "payments" ("order_id") WHERE (status IN ('CREATING', 'PENDING'));
-- reverse: create index "waitlist_payment_key" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_payment_key";
-- reverse: create index "waitlist_card_due" to table: "waitlist_entries"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_card_due";
-- reverse: create index "payment_entry_id" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_entry_id";
-- reverse: create index "payment_live_by_check_at" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_live_by_check_at";
-- reverse: create index "payment_one_live_per_order" to table: "payments"
DROP INDEX CONCURRENTLY IF EXISTS "payment_one_live_per_order";
