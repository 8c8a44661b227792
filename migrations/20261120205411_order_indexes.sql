-- +goose Up
-- drop index "order_item_id_status" from table: "orders"
DROP INDEX "order_item_id_status";
-- drop index "order_status_payment_deadline" from table: "orders"
DROP INDEX "order_status_payment_deadline";
-- modify "orders" table
ALTER TABLE "orders" DROP COLUMN "batch_id";
-- create index "order_unpaid_by_deadline" to table: "orders"
CREATE INDEX "order_unpaid_by_deadline" ON "orders" ("payment_deadline") WHERE status = 'PENDING_PAYMENT';

-- +goose Down
-- reverse: create index "order_unpaid_by_deadline" to table: "orders"
DROP INDEX "order_unpaid_by_deadline";
-- reverse: modify "orders" table
ALTER TABLE "orders" ADD COLUMN "batch_id" uuid NULL;
UPDATE "orders" SET "batch_id" = "id";
ALTER TABLE "orders" ALTER COLUMN "batch_id" SET NOT NULL;
-- reverse: drop index "order_status_payment_deadline" from table: "orders"
CREATE INDEX "order_status_payment_deadline" ON "orders" ("status", "payment_deadline");
-- reverse: drop index "order_item_id_status" from table: "orders"
CREATE INDEX "order_item_id_status" ON "orders" ("item_id", "status");
