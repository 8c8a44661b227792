-- +goose Up
-- modify "payment_events" table
ALTER TABLE "payment_events" ADD COLUMN "refund_key" uuid NULL, ADD COLUMN "reason" character varying NOT NULL DEFAULT '';
-- modify "refunds" table
ALTER TABLE "refunds" ADD COLUMN "attempts" bigint NOT NULL DEFAULT 1, ADD COLUMN "failure" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "refunds" table
ALTER TABLE "refunds" DROP COLUMN "failure", DROP COLUMN "attempts";
-- reverse: modify "payment_events" table
ALTER TABLE "payment_events" DROP COLUMN "reason", DROP COLUMN "refund_key";
