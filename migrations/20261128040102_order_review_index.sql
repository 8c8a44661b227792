-- +goose NO TRANSACTION
-- +goose Up
-- Orders are written while the index is built. A build that was interrupted leaves an invalid one.
DROP INDEX CONCURRENTLY IF EXISTS "order_in_review";
-- create index "order_in_review" to table: "orders"
CREATE INDEX CONCURRENTLY "order_in_review" ON "orders" ("review_at") WHERE (review = 'HELD' AND status = 'PENDING_PAYMENT');

-- +goose Down
-- reverse: create index "order_in_review"
DROP INDEX CONCURRENTLY IF EXISTS "order_in_review";
