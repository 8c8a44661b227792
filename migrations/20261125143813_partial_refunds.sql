-- +goose Up
-- modify "orders" table; the next file validates the constraint, because reading all orders would lock the table
ALTER TABLE "orders" ADD COLUMN "refunded_quantity" bigint NOT NULL DEFAULT 0, ADD COLUMN "return_key" uuid NULL;
ALTER TABLE "orders" ADD CONSTRAINT "not_over_refunded" CHECK ((refunded_quantity >= 0) AND (refunded_quantity <= quantity)) NOT VALID;
-- modify "refunds" table
ALTER TABLE "refunds" ADD COLUMN "quantity" bigint NOT NULL DEFAULT 0, ADD COLUMN "applied" boolean NOT NULL DEFAULT false;

-- +goose Down
-- reverse: modify "refunds" table
ALTER TABLE "refunds" DROP COLUMN "applied", DROP COLUMN "quantity";
-- reverse: modify "orders" table
ALTER TABLE "orders" DROP CONSTRAINT "not_over_refunded", DROP COLUMN "return_key", DROP COLUMN "refunded_quantity";
