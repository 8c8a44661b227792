-- +goose Up
-- drop index "refund_one_per_payment" from table: "refunds"
DROP INDEX "refund_one_per_payment";
-- modify "refunds" table
ALTER TABLE "refunds" ADD COLUMN "transaction" character varying NOT NULL DEFAULT '';
-- create index "refund_one_per_transaction" to table: "refunds"
CREATE UNIQUE INDEX "refund_one_per_transaction" ON "refunds" ("payment_id", "transaction") WHERE ((status)::text <> 'REJECTED'::text);

-- +goose Down
-- reverse: create index "refund_one_per_transaction" to table: "refunds"
DROP INDEX "refund_one_per_transaction";
-- reverse: modify "refunds" table
ALTER TABLE "refunds" DROP COLUMN "transaction";
-- reverse: drop index "refund_one_per_payment" from table: "refunds"
CREATE UNIQUE INDEX "refund_one_per_payment" ON "refunds" ("payment_id") WHERE ((status)::text <> 'REJECTED'::text);
